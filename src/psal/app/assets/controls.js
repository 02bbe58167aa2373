// What the buttons do, and files that are dropped or pasted.

import { save } from "./server.js";

const find = (id) => document.getElementById(id);

// Lets the user choose files with one of the page's inputs.
export function choose(input, then) {
  find(input).value = "";
  find(input).onchange = () => find(input).files.length && then(find(input).files);
  find(input).click();
}

export function setUpControls(editor, openFile, folder) {
  for (const id of ["choose", "open"]) find(id).onclick = openFile;
  find("sample").onclick = () => editor.openSample();
  find("download").onclick = () => editor.download();
  find("undo").onclick = () => editor.undo();
  find("redo").onclick = () => editor.redo();
  find("fill").onclick = () => editor.fill();
  find("stop").onclick = () => editor.act("/stop");
  find("another").onclick = () => editor.act("/variant", { json: {} });
  find("invert").onclick = () => editor.change({ kind: "invert" });
  find("clear").onclick = () => editor.change({ kind: "clear" });
  find("grow").onclick = () => editor.change({ kind: "grow", pixels: Number(find("grow-by").value) });
  find("mask-file").onclick = () =>
    choose("partner", ([file]) => editor.act("/mask", { body: file, params: { name: file.name, layer: editor.layer } }));
  find("guide").onclick = () =>
    choose("partner", ([file]) => editor.act("/guide", { body: file, params: { name: file.name } }));
  find("guide-clear").onclick = () => editor.act("/guide");
  for (const radio of document.querySelectorAll("#layers input")) radio.onchange = () => (editor.layer = radio.value);
  find("mask-save").onclick = () => save(`/photos/${editor.state.id}/mask`).catch((error) => editor.complain(error));
  find("zoom-in").onclick = () => editor.zoom((view) => view.zoomBy(1.5));
  find("zoom-out").onclick = () => editor.zoom((view) => view.zoomBy(1 / 1.5));
  find("zoom-fit").onclick = () => editor.zoom((view) => view.fit());
  find("zoom-full").onclick = () => editor.zoom((view) => view.zoomBy(1 / (view.scale * editor.screen.ratio)));
  for (const button of document.querySelectorAll("[data-tool]")) button.onclick = () => editor.setTool(button.dataset.tool);
  find("size").onchange = (event) => editor.setSize(Number(event.target.value));
  find("size-slider").oninput = (event) => {
    editor.setSize(Math.exp((Number(event.target.value) / 100) * Math.log(1000)));
    editor.previewSize(true);
  };
  find("size-slider").onchange = () => editor.previewSize(false);
  for (const [event, shows] of Object.entries({ pointerdown: true, pointerup: false, pointerleave: false, blur: false }))
    find("original").addEventListener(event, () => editor.showOriginal(shows));
  find("original").addEventListener("keydown", ({ key }) => [" ", "Enter"].includes(key) && editor.showOriginal(true));
  find("original").addEventListener("keyup", () => editor.showOriginal(false));

  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("dropping"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    const { files } = event.dataTransfer;
    if (files.length > 1 || folder.isOpen()) folder.show(files);
    else if (files.length) editor.open(files[0]);
  });
  addEventListener("paste", (event) => {
    const [file] = event.clipboardData.files;
    if (file && !folder.isOpen()) editor.open(file);
  });
  addEventListener("beforeunload", (event) => editor.hasUnsavedWork() && event.preventDefault());
}
