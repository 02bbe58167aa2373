// A field for one picture. Its value is null, or {path, name} as uploaded, or that with {preview, width, height} once
// the server has looked at it; only the server opens files, since browsers cannot show all that it reads.
const part = (name) => element.querySelector(name);

const show = () => {
  const value = props.value;
  const image = part(".picker-image");
  image.hidden = !value?.preview;
  if (value?.preview) image.src = value.preview;
  part(".picker-hint").hidden = Boolean(value?.preview);
  part(".picker-clear").hidden = !value;
  const size = value?.width ? ` (${value.width} × ${value.height})` : "";
  part(".picker-name").textContent = value ? `${value.name}${size}` : "";
};

const take = async (file) => {
  if (!file) return;
  part(".picker-name").textContent = `loading ${file.name} …`;
  try {
    const { path } = await upload(file);
    props.value = { path, name: file.name };
    trigger("upload");
  } catch (error) {
    props.value = { problem: String(error?.message ?? error), name: file.name };
    trigger("upload");
  }
};

const input = () => part("input[type=file]");
element.addEventListener("click", (event) => {
  if (event.target.closest(".picker-drop")) input().click();
  if (event.target.closest(".picker-clear")) {
    props.value = null;
    trigger("clear");
    show();
  }
});
element.addEventListener("change", (event) => {
  if (event.target !== input()) return;
  take(input().files[0]);
  input().value = ""; // so that the same file can be chosen again
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  element.addEventListener(kind, (event) => {
    event.preventDefault();
    part(".picker-drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") take(event.dataTransfer.files[0]);
  });
}
element.addEventListener("paste", (event) => take(event.clipboardData.files[0]));
watch("value", show);
show();
