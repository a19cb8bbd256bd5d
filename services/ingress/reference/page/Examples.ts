/** Example requests as commands, with their answers. */
import type { Endpoint } from "./Endpoint.ts"
import { details, type Html, html } from "./Html.ts"
import type { Parameter } from "../Route.ts"

/** A text in single quotes for a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const asText = (value: unknown): string => typeof value === "string" ? value : JSON.stringify(value, null, 2)

/** A request as a command, with the values of its example. */
const commandOf = (endpoint: Endpoint, type = "", name = "", body?: unknown): string => {
  const { method, parameters, path, security } = endpoint
  const valueOf = ({ example, examples }: Parameter): unknown => examples?.[name]?.value ?? example
  const address = parameters.filter((parameter) => parameter.in === "path").reduce((url, parameter) => {
    const value = valueOf(parameter)
    return typeof value === "string" ? url.replace(`{${parameter.name}}`, value) : url
  }, path)
  const sent = [
    ...(security.length === 0 ? [] : ["Authorization: Bearer $KEY"]),
    ...parameters.filter((parameter) => parameter.in === "header" && "example" in parameter)
      .map((parameter) => `${parameter.name}: ${valueOf(parameter)}`),
    ...(type === "application/json" ? [`Content-Type: ${type}`] : [])
  ]
  const words = [
    `curl${method === "delete" ? " -X DELETE" : ""} "$BASE${address}"`,
    ...sent.map((header) => `-H "${header}"`),
    ...(typeof body !== "object" || body === null ? [] : type === "application/json"
      ? [`-d ${quoted(asText(body))}`]
      : Object.entries(body).map(([field, value]) => `-F ${quoted(`${field}=${value}`)}`))
  ]
  return words.join(" \\\n  ")
}

/** The answers of a success, by the example of the request. */
const answersOf = ({ responses }: Endpoint): ReadonlyMap<string, unknown> =>
  new Map(
    Object.values(responses["200"]?.content ?? {}).flatMap(({ example, examples = {} }) => [
      ...(example === undefined ? [] : [["", example] as const]),
      ...Object.entries(examples).map(([name, { value }]) => [name, value] as const)
    ])
  )

export const examplesOf = (endpoint: Endpoint): ReadonlyArray<Html> => {
  const answers = answersOf(endpoint)
  const exampleOf = (title: string, command: string, name: string) => {
    const answer = answers.get(name)
    return details(
      title,
      html`<pre>${command}</pre>`,
      ...(answer === undefined ? [] : [html`<p>Answer:</p><pre>${asText(answer)}</pre>`])
    )
  }
  if (endpoint.requestBody === undefined) return [exampleOf("Example", commandOf(endpoint), "")]
  return Object.entries(endpoint.requestBody.content).flatMap(([type, { examples = {} }]) =>
    Object.entries(examples).map(([name, { summary, value }]) =>
      exampleOf(`Example: ${summary}`, commandOf(endpoint, type, name, value), name)
    )
  )
}
