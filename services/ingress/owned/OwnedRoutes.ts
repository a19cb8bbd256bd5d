/** Routes to what owners have stored: a key reaches only what belongs to its owner. */
import { Effect } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { InvalidRequest, orUnavailable } from "../../../shared/contract/JobError.ts"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { Owners } from "../../../shared/records/Owners.ts"
import type { RequestError } from "../errors/IngressError.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import { Admission } from "../request/Admission.ts"
import { authenticate } from "../request/Authentication.ts"
import { replayed } from "../request/IdempotencyKey.ts"
import { respond } from "../answer/Respond.ts"

export interface Asked {
  readonly owner: Owner
  /** The id of the key. */
  readonly key: string
  /** The path's `:id`. */
  readonly id: string
  readonly query: URLSearchParams
  readonly headers: RequestHeaders
  readonly request: HttpServerRequest.HttpServerRequest
  /** The id of the request. */
  readonly requestId: string
}

type Answer = Effect.Effect<HttpServerResponse.HttpServerResponse, RequestError>

export interface OwnedRoute {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  /** The name of the route in records and traces. */
  readonly name: string
  /** The dialect of errors and of the header with the key; `openai` by default. */
  readonly dialect?: Dialect
  readonly answer: (asked: Asked) => Answer
  /** Answers keys whose owner has never stored anything. `create`: the route stores something, and takes one of the key's requests. */
  readonly orElse: Answer | "create"
}

/** What routes have in common. */
interface Family extends Pick<OwnedRoute, "path" | "name" | "dialect"> {
  /** Answers keys whose owner has never stored anything, unless a route has its own answer. */
  readonly orElse: Answer
}

/** Makes routes whose paths and names begin with those of the family. */
export const routesOf = ({ name: family, orElse: missing, path, ...rest }: Family) =>
(
  method: OwnedRoute["method"],
  suffix: string,
  name: string,
  answer: OwnedRoute["answer"],
  orElse: OwnedRoute["orElse"] = missing
): OwnedRoute => ({ ...rest, method, path: `${path}${suffix}`, name: `${family}.${name}`, answer, orElse })

export const json = (answer: (asked: Asked) => Effect.Effect<object, RequestError>) => (asked: Asked): Answer =>
  Effect.map(answer(asked), (body) => HttpServerResponse.jsonUnsafe(body))

/** The answer to a request that creates something, or repeats a request that did. */
export interface Created {
  readonly body: object
  readonly isRepeated: boolean
}

export const created = (answer: (asked: Asked) => Effect.Effect<Created, RequestError>) => (asked: Asked): Answer =>
  Effect.map(
    answer(asked),
    ({ body, isRepeated }) => HttpServerResponse.jsonUnsafe(body, isRepeated ? { headers: replayed } : undefined)
  )

export const addAll = Effect.fnUntraced(
  function*(router: HttpRouter.HttpRouter, routes: ReadonlyArray<OwnedRoute>) {
    const keys = yield* KeyRing
    const owners = yield* Owners
    const admission = yield* Admission
    const add = (id: string) => orUnavailable(owners.add(id))
    for (const { answer, dialect = "openai", method, name, orElse, path } of routes) {
      yield* router.add(
        method,
        path as `/${string}`,
        (request: HttpServerRequest.HttpServerRequest) =>
          respond(name, dialect, (record) =>
            Effect.gen(function*() {
              const { headers, url } = request
              const key = yield* authenticate(keys, { headers }, dialect)
              record.setKey(key.id)
              if (orElse === "create") record.answerHeaders = admission.headers(key, dialect)
              const entry = orElse === "create" ? yield* admission.enter(key, false) : undefined
              const { id = "" } = yield* HttpRouter.params
              const known = owners.known(key.owner)
              if (known === undefined && orElse !== "create") return yield* orElse
              const owner = known ?? (yield* add(key.owner))
              const { searchParams: query } = new URL(url, "http://gateway")
              const asked = { owner, key: key.id, id, query, headers, request, requestId: record.id }
              return yield* Effect.tapError(answer(asked), () => Effect.sync(() => entry?.giveBack()))
            }))
      )
    }
  }
)

const maxPerPage = 100
const perPageByDefault = 20

/** How many elements a page has. Clients may ask for more, and learn from `has_more` that there is another page. */
export const limitIn = (query: URLSearchParams): Effect.Effect<number, InvalidRequest> => {
  const limit = Number(query.get("limit") ?? perPageByDefault)
  return Number.isInteger(limit) && limit >= 1
    ? Effect.succeed(Math.min(limit, maxPerPage))
    : Effect.fail(InvalidRequest.at("limit", "must be a whole number above 0"))
}

export const toPage = (data: ReadonlyArray<object>, hasMore: boolean): object => ({
  object: "list",
  data,
  first_id: idOf(data[0]),
  last_id: idOf(data.at(-1)),
  has_more: hasMore
})

const idOf = (element: object | undefined): unknown => element === undefined ? null : Reflect.get(element, "id") ?? null
