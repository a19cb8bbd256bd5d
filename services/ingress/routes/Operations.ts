/**
 * The one handler behind every operation: authenticate, decode, find the model, and answer: by a job whose answer is
 * relayed or, for the operations in `Tasks`, by a task.
 */
import { Clock, Config, Context, Effect, Layer } from "effect"
import { type Headers, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { atLeast } from "../../../shared/contract/Fields.ts"
import { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import { Models, type OfferedModel } from "../../../shared/catalogue/Models.ts"
import { InvalidRequest, ModelNotFound } from "../../../shared/contract/JobError.ts"
import type { Dialect, Operation, Workload } from "../../../shared/contract/Operation.ts"
import { versionPattern } from "../../../shared/contract/operations/Messages.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { strictTranslation, translationHeader } from "../../../shared/contract/Translation.ts"
import type { PriorityClass } from "../../../shared/contract/PriorityClass.ts"
import { allows, type ApiKey } from "../../../shared/keys/ApiKey.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { Admission, type Over } from "../request/Admission.ts"
import { relay } from "../answer/AnswerRelay.ts"
import { authenticate } from "../request/Authentication.ts"
import { DecodeTurns } from "../request/DecodeTurns.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import type { RequestError } from "../errors/IngressError.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import { freeBytes, ReadingRoom } from "../request/ReadingRoom.ts"
import * as RequestBody from "../request/RequestBody.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"
import { CurrentRequest, type RequestRecord } from "../record/RequestRecord.ts"

/** Answers an effect's error in the dialect of its route. */
export const respond = <R>(
  operation: string,
  dialect: Dialect,
  effect: (record: RequestRecord) => Effect.Effect<HttpServerResponse.HttpServerResponse, RequestError, R>
) => Effect.flatMap(CurrentRequest, (record) => answered(record, operation, dialect, effect))

const answered = <R>(
  record: RequestRecord,
  operation: string,
  dialect: Dialect,
  effect: (record: RequestRecord) => Effect.Effect<HttpServerResponse.HttpServerResponse, RequestError, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> => {
  record.operation = operation
  return Effect.catchEager(effect(record), (error) => {
    record.failed(error._tag)
    return Effect.succeed(ErrorEnvelope.toResponse(dialect, error, record.id))
  })
}

/** A request that is to be served. */
export interface Accepted {
  readonly operation: Operation
  readonly headers: Headers.Headers
  /** Whose it is, as an opaque id, and how it is treated where a queue forms. */
  readonly tenant: string
  readonly weight: number
  readonly priority: PriorityClass
  readonly model: string
  readonly workload: Workload
  readonly pool: string
  /** As the client sent it, and known to decode. */
  readonly body: Uint8Array
  readonly traceparent: string
  /** To be told when the request is over, where that is of interest. */
  readonly over: Over | undefined
}

type Answer = (
  accepted: Accepted,
  record: RequestRecord
) => Effect.Effect<HttpServerResponse.HttpServerResponse, RequestError>

/** Serves the operations behind one path of the router. */
const serve = Effect.fnUntraced(function*(group: PathTemplate.RouteGroup, answer: Answer) {
  const keys = yield* KeyRing
  const offered = yield* Models
  const admission = yield* Admission
  const { bodies } = yield* JobClient
  const turns = yield* DecodeTurns

  /** What needs no waiting is done at once: the steps of a fiber would cost more than it does. */
  const handle = (
    request: HttpServerRequest.HttpServerRequest,
    { model: pathModel, operation }: PathTemplate.Match
  ) =>
  (record: RequestRecord) => {
    const { headers } = record
    const perform = (key: ApiKey, body: Uint8Array, room: ReadingRoom) => {
      // not below the decoded body's closure: it would hold that, too, until the answer has ended
      const serve = (name: string, { pool, workload }: OfferedModel) => (over: Over | undefined) => {
        // from here on the job counts its body; a task has none
        if (operation.kind !== "task") room.leave()
        return answer({
          operation,
          headers,
          tenant: key.id,
          weight: key.weight,
          priority: key.priorityClass,
          model: name,
          workload,
          pool,
          body,
          traceparent: TraceParent.format(record.span),
          over
        }, record)
      }
      return Effect.flatMapEager(
        turns.inTurn(key.id, body.length, () => RequestBody.decode(operation, headers, body)),
        (decoded) =>
          Effect.flatMapEager(findModel(operation, pathModel ?? decoded.model), ({ model, name }) => {
            record.accepted(operation, name)
            return admission.through(
              key,
              { operation, model: name, decoded, bytes: body.length },
              serve(name, model)
            )
          })
      )
    }
    const readAndPerform = (key: ApiKey) => {
      const room = new ReadingRoom(bodies, key.id)
      const performed = Effect.flatMap(
        RequestBody.read(operation, request, headers, room),
        (body) => perform(key, body, room)
      )
      // most bodies are too small to take room
      return Number(headers["content-length"]) < freeBytes
        ? performed
        : Effect.ensuring(performed, Effect.sync(() => room.leave()))
    }
    return authenticate(keys, headers, operation.dialect).pipe(
      Effect.flatMapEager((key) => Effect.mapEager(checkHeaders(operation, headers), () => key)),
      Effect.flatMapEager((key) => {
        record.authenticated(key.id)
        record.answerHeaders = admission.headers(key, operation.dialect)
        return readAndPerform(key)
      })
    )
  }

  const findModel = (
    operation: Operation,
    name: string | null | undefined
  ): Effect.Effect<{ readonly name: string; readonly model: OfferedModel }, InvalidRequest | ModelNotFound> => {
    if (name === undefined || name === null) return Effect.fail(new InvalidRequest(modelMissing))
    const model = offered.current().models.get(name)
    return model === undefined || !operation.workloads.includes(model.workload)
      ? Effect.fail(new ModelNotFound({ model: name }))
      : Effect.succeed({ name, model })
  }

  const route = Effect.contextWith((context: Context.Context<RouteContext>) => {
    const request = Context.get(context, HttpServerRequest.HttpServerRequest)
    const record = Context.get(context, CurrentRequest)
    const { "*": rest = "" } = Context.get(context, HttpRouter.RouteContext).params
    const matched = PathTemplate.match(group, rest)
    return matched === undefined
      ? answered(
        record,
        "none",
        "openai",
        () => Effect.fail(RouteTemplate.notFound(request.method, request.url))
      )
      : answered(
        record,
        matched.operation.name,
        matched.operation.dialect,
        handle(request, matched)
      )
  })
  return HttpRouter.route("POST", group.path, route)
})

type RouteContext = HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext | CurrentRequest

/** The routes of these operations. */
export const serveAll = (operations: ReadonlyArray<Operation>, answer: Answer) =>
  Effect.forEach(PathTemplate.groups(operations), (group) => serve(group, answer))

/** Submits the request as a job and relays its answer. */
const relayed = Effect.gen(function*() {
  const jobs = yield* JobClient
  const clock = yield* Clock.Clock
  const queueTimeoutMs = yield* Config.schema(atLeast(1), "GATEWAY_QUEUE_TIMEOUT_MS").pipe(Config.withDefault(30_000))
  const answer: Answer = ({ headers, operation, over, ...accepted }, record) => {
    const patienceMs = Math.min(queueTimeoutMs, clientPatienceMs(headers["x-stainless-timeout"]))
    return relay({
      jobs,
      dialect: operation.dialect,
      record,
      over,
      request: {
        ...accepted,
        parent: record.span,
        operation: operation.name,
        contentType: headers["content-type"] ?? "application/json",
        headers: passedOn(operation, headers),
        deadline: clock.currentTimeMillisUnsafe() + patienceMs
      }
    })
  }
  return answer
})

const modelMissing = { message: "model: is required", param: "model", code: "invalid_value" }

/** A version is a date. Which ones there are is the provider's business. */

const checkHeaders = (operation: Operation, headers: Headers.Headers): Effect.Effect<void, InvalidRequest> => {
  const translation = headers[translationHeader]
  if (translation !== undefined && translation !== strictTranslation) {
    return wrongHeader(translationHeader, `must be '${strictTranslation}' where it is given`, "invalid_value")
  }
  const names = operation.versionHeaders
  if (names === undefined) return Effect.void
  const name = names.find((name) => headers[name] !== undefined)
  if (name !== undefined && versionPattern.test(headers[name] ?? "")) return Effect.void
  const message = name === undefined
    ? `the header ${names.join(" or ")} is required, a date such as 2023-06-01`
    : "must be a date such as 2023-06-01"
  return wrongHeader(name ?? names[0] ?? "", message, "invalid_version")
}

const wrongHeader = (name: string, message: string, code: string): Effect.Effect<never, InvalidRequest> =>
  Effect.fail(InvalidRequest.at(name, message, code))

/** What goes with the job of the request's headers. */
const passedOn = (
  { headers: further = [], versionHeaders = [] }: Operation,
  headers: Headers.Headers
): Readonly<Record<string, string>> | undefined => {
  let passed: Record<string, string> | undefined
  for (const name of [...versionHeaders, ...further]) {
    const value = headers[name]
    if (value !== undefined) passed = { ...passed, [name]: value }
  }
  return passed
}

/** What is begun later than at this part of a client's time would be answered to nobody. */
const mostOfTimeout = 0.8

/** Official clients say how long they will wait, in seconds: for how long that may be in the queue. */
const clientPatienceMs = (seconds: string | undefined): number => {
  const value = Number(seconds)
  return value > 0 ? mostOfTimeout * value * 1_000 : Number.POSITIVE_INFINITY
}

/** The models that a key may use, as official clients list them. */
const modelRoutes = Effect.gen(function*() {
  const keys = yield* KeyRing
  const offered = yield* Models
  const entry = (id: string) => ({ id, object: "model", created: 0, owned_by: "model-gateway" })
  const list = (key: ApiKey) => {
    const models = [...offered.current().models.keys()].filter((model) => allows(key, model))
    return { object: "list", data: models.map(entry), has_more: false }
  }
  // the router adds the path without the star by itself; a model's name may hold slashes
  return HttpRouter.route(
    "GET",
    "/v1/models/*",
    (request) =>
      respond("models", "openai", (record) =>
        Effect.gen(function*() {
          const key = yield* authenticate(keys, request.headers, "anthropic")
          record.authenticated(key.id)
          const { "*": encoded = "" } = yield* HttpRouter.params
          const id = PathTemplate.decodePath(encoded)
          if (id === "") return HttpServerResponse.jsonUnsafe(list(key))
          if (!offered.current().models.has(id) || !allows(key, id)) return yield* new ModelNotFound({ model: id })
          return HttpServerResponse.jsonUnsafe(entry(id))
        }))
  )
})

export const layer = Layer.unwrap(Effect.gen(function*() {
  const routes = yield* serveAll(operations.filter(({ kind }) => kind !== "task"), yield* relayed)
  return HttpRouter.addAll([...routes, yield* modelRoutes])
})).pipe(Layer.provide(DecodeTurns.layer))
