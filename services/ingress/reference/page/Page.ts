/** The OpenAPI document as one web page without scripts. */
import { document } from "../Document.ts"
import { type Content, type Endpoint, endpoints, type Referenced } from "./Endpoint.ts"
import { examplesOf } from "./Examples.ts"
import { details, type Html, html, inline, paragraphs } from "./Html.ts"
import { fieldsOf, type JsonSchema } from "./SchemaFields.ts"
import { style } from "./Style.ts"

const schemas = document.components.schemas as Readonly<Record<string, JsonSchema>>
const headers = document.components.headers as Readonly<Record<string, { readonly description: string }>>

const nameIn = ({ $ref }: Referenced): string => $ref.split("/").at(-1) ?? ""

const listOf = (items: ReadonlyArray<readonly [name: string, note: string | undefined, description: string]>): Html =>
  html`<ul>${
    items.map(([name, note, description]) =>
      html`<li><code>${name}</code> <small>${note}</small> ${inline(description)}</li>`
    )
  }</ul>`

const parametersOf = ({ parameters }: Endpoint): Html =>
  details(
    "Parameters",
    listOf(parameters.map(({ description, in: place, name, required }) =>
      [name, `${place}${required ? ", required" : ""}`, description] as const
    ))
  )

const resolve = (schema: JsonSchema | Referenced): JsonSchema =>
  "$ref" in schema ? schemas[nameIn(schema)] ?? {} : schema

const bodiesOf = (title: string, content: Content = {}): ReadonlyArray<Html> =>
  Object.entries(content).map(([type, media]) => {
    const schema = resolve(media.schema)
    return schema.properties === undefined
      ? html`<p>${title}: <code>${type}</code> ${inline(schema.description ?? "")}</p>`
      : details(html`${title}: <code>${type}</code>`, fieldsOf(schema))
  })

const headersOf = ({ responses }: Endpoint): Html => {
  const refs = Object.entries(responses).filter(([status]) => status < "400").flatMap(([, response]) =>
    Object.values(response.headers ?? {})
  )
  const names = [...new Set(refs.map(nameIn))]
  return details(
    "Headers of the answer",
    listOf(names.map((name) => [name, undefined, headers[name]?.description ?? ""]))
  )
}

/** The format of the route's errors, and each error. Those of the HTTP server come last and have another format. */
const errorsOf = ({ responses }: Endpoint): Html => {
  const errors = Object.entries(responses).filter(([status]) => status >= "400").flatMap(([status, { content = {} }]) =>
    Object.values(content).map((media) => ({ ...media, status }))
  )
  return details(
    "Errors",
    ...errors.slice(0, 1).map(({ schema }) => fieldsOf(resolve(schema))),
    html`<ul>${
      errors.flatMap(({ examples = {}, status }) =>
        Object.entries(examples).map(([code, { summary = "" }]) =>
          html`<li>${status} <code>${code}</code> ${inline(summary)}</li>`
        )
      )
    }</ul>`
  )
}

const sectionOf = (endpoint: Endpoint): Html =>
  html`<article id="${endpoint.operationId}"><h3><a href="#${endpoint.operationId}">${endpoint.summary}</a></h3>
<p class="path"><b>${endpoint.method.toUpperCase()}</b> <code>${endpoint.path}</code></p>
${paragraphs(endpoint.description)}${bodiesOf("Request", endpoint.requestBody?.content)}${
    Object.entries(endpoint.responses).filter(([status]) => status < "400").map(([status, { content, description }]) =>
      html`${bodiesOf(`${status} ${description}`, content)}`
    )
  }${parametersOf(endpoint)}${headersOf(endpoint)}${errorsOf(endpoint)}${examplesOf(endpoint)}</article>
`

const linksOf = (tag: string): Html =>
  html`<p>${tag}</p><ul>${
    endpoints.filter(({ tags }) => tags.includes(tag)).map(({ operationId, summary }) =>
      html`<li><a href="#${operationId}">${summary}</a></li>`
    )
  }</ul>`

const { info, tags } = document

/** The text of the page. */
export const render = (): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<nav><p><a href="#">${info.title}</a></p>${
    tags.map(({ name }) => linksOf(name))
  }<p><a href="openapi.json">openapi.json</a></p></nav>
<main>
<h1>${info.title} API</h1>
${paragraphs(info.description)}
<p>In the examples, <code>$BASE</code> is this gateway's URL, and <code>$KEY</code> an API key.</p>
${
    tags.map(({ description, name }) =>
      html`<h2>${name}</h2><p>${inline(description)}</p>${
        endpoints.filter(({ tags }) => tags.includes(name)).map(sectionOf)
      }`
    )
  }
</main>
</body>
</html>
`.text
