/** Requests to the API of the control plane, with objects as JSON. */
import { Effect, Stream } from "effect"
import { HttpClientRequest } from "effect/http"
import { ControlPlane } from "./ControlPlane.ts"

/** Reads the object at a path. */
export const read = Effect.fn("Api.read")(function*<A>(path: string) {
  const { client } = yield* ControlPlane
  const response = yield* client.get(path)
  return (yield* response.json) as A
})

export const create = Effect.fn("Api.create")(function*(path: string, object: object) {
  const { client } = yield* ControlPlane
  yield* client.execute(HttpClientRequest.post(path).pipe(HttpClientRequest.bodyJsonUnsafe(object)))
})

const change = Effect.fn("Api.change")(function*(path: string, fields: object, type: string) {
  const { client } = yield* ControlPlane
  yield* client.execute(
    HttpClientRequest.patch(path).pipe(HttpClientRequest.bodyText(JSON.stringify(fields), `application/${type}+json`))
  )
})

/** Changes these fields of an object, and entries of its lists by their keys. */
export const patch = (path: string, fields: object) => change(path, fields, "strategic-merge-patch")

/** The same for an object of another project's kind, of which lists are replaced. */
export const patchCustom = (path: string, fields: object) => change(path, fields, "merge-patch")

export const remove = Effect.fn("Api.remove")(function*(path: string, options: object = {}) {
  const { client } = yield* ControlPlane
  yield* client.execute(HttpClientRequest.delete(path).pipe(HttpClientRequest.bodyJsonUnsafe(options)))
})

/** An object with the conditions that its controller sets. */
export interface Conditioned {
  readonly status?: { readonly conditions?: ReadonlyArray<{ readonly type: string; readonly status: string }> }
}

/** Whether a condition of this type is true. */
export const meets = ({ status }: Conditioned, type: string): boolean =>
  status?.conditions?.some((condition) => condition.type === type && condition.status === "True") === true

export interface Event<A> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR"
  readonly object: A
}

/** The objects at a path: first those that exist, then every change, until the connection ends. */
export const watch = <A>(path: string) =>
  Stream.unwrap(Effect.gen(function*() {
    const { client } = yield* ControlPlane
    const response = yield* client.get(path, { urlParams: { watch: "1", resourceVersion: "0" } })
    return response.stream.pipe(
      Stream.decodeText(),
      Stream.splitLines,
      Stream.map((line) => JSON.parse(line) as Event<A>)
    )
  }))
