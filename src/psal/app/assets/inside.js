// The page Look inside: match two pictures, then look from a pixel.

import { askJson } from "./server.js";

const find = (id) => document.getElementById(id);
const NUMBERS = ["neighbors", "patch_size", "iterations", "temperature", "seed"];
let id = null, looks = 0, stopping = null;

async function attempt(work) {
  find("error").textContent = "";
  try {
    await work();
  } catch (error) {
    find("error").textContent = error.name === "AbortError" ? "Stopped." : error.message;
    find("status").textContent = "";
  }
}

const begin = async (params) => ({ id } = await askJson("/matches", { params }));

for (const role of ["photo", "reference"])
  find(role).onclick = () => {
    find("file").value = "";
    find("file").onchange = () => find("file").files.length && attempt(() => send(role, find("file").files[0]));
    find("file").click();
  };

async function send(role, file) {
  if (!id) await begin();
  const { name } = await askJson(`/matches/${id}/pictures/${role}`, { body: file, params: { name: file.name } });
  find(`${role}-name`).textContent = name;
}

find("sample").onclick = () =>
  attempt(async () => {
    await begin({ sample: 1 });
    for (const role of ["photo", "reference"]) find(`${role}-name`).textContent = "sample";
    await match();
  });
find("match").onclick = () => attempt(match);
find("stop").onclick = () => stopping?.abort();

async function match() {
  if (!id) await begin();
  const given = NUMBERS.filter((name) => find(name).value !== ""); // the server has defaults for the others
  const json = Object.fromEntries(given.map((name) => [name, find(name).value]));
  Object.assign(json, { init: find("init").value, aggregate: find("aggregate").checked });
  stopping = new AbortController();
  find("status").textContent = "Matching …";
  find("stop").hidden = false;
  find("match").disabled = true;
  const start = performance.now();
  try {
    const { height, width } = await askJson(`/matches/${id}`, { json, signal: stopping.signal });
    find("row").value = Math.floor(height / 2);
    find("column").value = Math.floor(width / 2);
    await look(`Matched in ${((performance.now() - start) / 1000).toFixed(1)} s. `);
  } finally {
    find("stop").hidden = true;
    find("match").disabled = false;
  }
}

find("look").onclick = () => attempt(() => look());
find("query-button").onclick = (event) => {
  const image = find("query"), box = image.getBoundingClientRect();
  if (!event.detail) return find("row").focus(); // by the keyboard: there is no place
  find("row").value = Math.floor(((event.clientY - box.top) / box.height) * image.naturalHeight);
  find("column").value = Math.floor(((event.clientX - box.left) / box.width) * image.naturalWidth);
  attempt(() => look());
};

async function look(before = "") {
  const json = { row: find("row").value, column: find("column").value };
  const found = await askJson(`/matches/${id}/look`, { json });
  const more = found.count > found.places.length ? `, the ${found.places.length} heaviest of them shown` : "";
  Object.assign(find("row"), { value: found.row });
  Object.assign(find("column"), { value: found.column });
  find("places").replaceChildren(
    ...found.places.map(([row, column, weight]) => {
      const line = document.createElement("tr");
      line.append(...[row, column, weight.toFixed(4)].map((text) => Object.assign(document.createElement("td"), { textContent: text })));
      return line;
    }),
  );
  looks++;
  for (const name of ["query", "key"]) find(name).src = `/matches/${id}/files/${name}?${looks}`;
  for (const name of ["figure", "table"]) find(name).href = `/matches/${id}/files/${name}?${looks}`;
  find("result").hidden = false;
  find("status").textContent = `${before}Row ${found.row}, column ${found.column} attends to ${found.count} places${more}.`;
}
