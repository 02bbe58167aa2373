// The API's page, written from its own description.

import { askJson } from "./server.js";

const make = (tag, text, ...children) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};

function kindOf(field) {
  if (field.format === "binary") return "file";
  if (field.enum) return field.enum.join(", ");
  const limits = [];
  if (field.exclusiveMinimum !== undefined) limits.push(`above ${field.exclusiveMinimum}`);
  if (field.maximum !== undefined && field.maximum < 1e9) limits.push(`up to ${field.maximum}`);
  return [field.type, ...limits].join(", ");
}

function article(path, operation) {
  const form = operation.requestBody.content["multipart/form-data"].schema;
  const rows = Object.entries(form.properties).map(([name, field]) => {
    const needed = form.required.includes(name) ? "required" : field.default !== undefined ? `default ${field.default}` : "optional";
    return make("tr", "", make("th", name), make("td", kindOf(field)), make("td", needed), make("td", field.description));
  });
  const head = make("tr", "", ...["field", "kind", "", "what"].map((text) => (text ? make("th", text) : make("td"))));
  const table = make("table", "", make("thead", "", head), make("tbody", "", ...rows));
  const files = form.required.map((name) => `-F ${name}=@${name}.png`).join(" ");
  const scroll = make("div", "", table);
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  const example = make("pre", `curl ${files} -o result.png ${location.origin}${path}`);
  example.tabIndex = 0;
  return make("article", "", make("h3", `POST ${path}`), make("p", operation.summary), scroll, example);
}

const { paths } = await askJson("/api/openapi.json", { method: "GET" });
document.getElementById("operations").append(...Object.entries(paths).map(([path, { post }]) => article(path, post)));
