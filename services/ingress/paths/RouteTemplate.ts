/** What telemetry calls the route of a request. Its path itself may hold anything, and names without number. */
import { operations } from "../../../shared/contract/operations/operations.ts"
import { filesPath } from "../../../shared/files/SignedUrl.ts"
import { RouteNotFound } from "../errors/IngressError.ts"
import * as PathTemplate from "./PathTemplate.ts"

const exact = new Map(["/v1/models", "/openapi.json", "/docs"].map((path) => [`GET ${path}`, path]))

/** Those whose paths begin like this, and what the rest makes of them. */
const begun: Array<readonly [start: string, template: (rest: string) => string | undefined]> = [
  ["GET /v1/models/", () => "/v1/models/{model}"],
  [`GET ${filesPath}`, () => `${filesPath}{id}`]
]

for (const { operations: behind, path } of PathTemplate.groups(operations)) {
  if (!path.endsWith("*")) exact.set(`POST ${path}`, path)
  else {
    const start = path.slice(0, -1)
    const suffixes = behind.map(({ suffix = "" }) => suffix)
    begun.push([`POST ${start}`, (rest) => {
      const suffix = suffixes.find((suffix) => rest.endsWith(suffix))
      return suffix === undefined ? undefined : `${start}{model}${suffix}`
    }])
  }
}

for (const { kind, paths: [path] } of operations) {
  if (kind !== "task") continue
  for (const method of ["GET", "DELETE"]) {
    begun.push([
      `${method} ${path}/`,
      (rest) => rest.endsWith("/content") ? `${path}/{task_id}/content` : `${path}/{task_id}`
    ])
  }
}

/** There is no such route. Base URLs of clients often lack their end. */
export const notFound = (method: string, url: string): RouteNotFound => {
  const [path = ""] = url.split("?")
  const meant = `/v1${path}`
  return new RouteNotFound({ method, path, meant: of(method, meant) === undefined ? undefined : meant })
}

/** `undefined` where there is no such route. */
export const of = (method: string, url: string): string | undefined => {
  const end = url.indexOf("?")
  const asked = `${method} ${end === -1 ? url : url.slice(0, end)}`
  const found = exact.get(asked)
  if (found !== undefined) return found
  for (const [start, template] of begun) {
    if (asked.startsWith(start)) return template(asked.slice(start.length))
  }
  return undefined
}
