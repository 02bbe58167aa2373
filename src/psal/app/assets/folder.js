// A folder of photographs with one mask: sent one after the other, fetched as one zip.

import { ask, askJson } from "./server.js";

const find = (id) => document.getElementById(id);

export function setUpFolder(editor, choose) {
  const dialog = find("folder");
  let mask = null, photos = [], stopping = null, id = null;

  const ready = () => (find("folder-run").disabled = !mask || !photos.length);
  const isOpen = () => dialog.open;

  // Opens the dialog, with the photographs that were dropped, if any were.
  function show(files = []) {
    if (stopping) return;
    find("folder-marked").hidden = !editor.state?.hole;
    if (files.length) setPhotos(files);
    ready();
    if (!dialog.open) dialog.showModal();
  }

  function setMask(file) {
    mask = file;
    find("folder-mask-name").textContent = file.name;
    ready();
  }

  function setPhotos(files) {
    photos = [...files];
    find("folder-photos-name").textContent = photos.length === 1 ? photos[0].name : `${photos.length} photographs`;
    ready();
  }

  for (const name of ["folder-start", "folder-open"]) find(name).onclick = () => show();
  find("folder-mask").onclick = () => choose("partner", ([file]) => setMask(file));
  find("folder-marked").onclick = async () => {
    try {
      const answer = await ask(`/photos/${editor.state.id}/mask`, { method: "GET" });
      setMask(new File([await answer.blob()], "what is marked.png"));
    } catch (error) {
      find("folder-status").textContent = error.message;
    }
  };
  find("folder-photos").onclick = () => choose("many", setPhotos);
  find("folder-close").onclick = () => (stopping ? stopping.abort() : dialog.close());
  dialog.addEventListener("cancel", (event) => stopping && event.preventDefault());
  find("folder-run").onclick = run;

  async function run() {
    stopping = new AbortController();
    const { signal } = stopping;
    let done = 0;
    working(true);
    try {
      if (id) await ask(`/folders/${id}/close`);
      ({ id } = await askJson("/folders", { body: mask, params: { name: mask.name }, signal }));
      for (const [number, photo] of photos.entries()) {
        find("folder-status").textContent = `${number + 1} of ${photos.length}: ${photo.name}`;
        find("folder-bar").value = number / photos.length;
        try {
          await ask(`/folders/${id}/photos`, { body: photo, params: { name: photo.name }, signal });
          done++;
        } catch (error) {
          if (error.name === "AbortError" || [0, 403, 507].includes(error.status)) throw error;
          find("folder-failures").append(Object.assign(document.createElement("li"), { textContent: `${photo.name}: ${error.message}` }));
        }
      }
      find("folder-bar").value = 1;
      find("folder-status").textContent = `${done} of ${photos.length} done.`;
    } catch (error) {
      find("folder-status").textContent = error.name === "AbortError" ? `Stopped after ${done} of ${photos.length}.` : error.message;
    } finally {
      stopping = null;
      working(false);
      find("folder-zip").hidden = !done;
      find("folder-run").classList.toggle("primary", !done);
      find("folder-zip").href = `/folders/${id}/zip`;
    }
  }

  function working(works) {
    for (const name of ["mask", "marked", "photos", "run"]) find(`folder-${name}`).disabled = works;
    find("folder-bar").hidden = false;
    find("folder-close").textContent = works ? "Stop" : "Close";
    if (works) {
      find("folder-zip").hidden = true;
      find("folder-failures").replaceChildren();
    }
  }

  return { isOpen, show };
}
