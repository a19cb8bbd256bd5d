/**
 * The one handler of every operation: it authenticates, decodes, finds the model, admits and answers, either with the
 * relayed answer of a job or, for the operations in `Tasks`, with a task.
 */
import { Clock, Context, Effect, Layer, Struct } from "effect"
import { type Headers, HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import { queueTimeout } from "../../../shared/bus/ingress/QueueTimeout.ts"
import { Models, type OfferedModel } from "../../../shared/catalogue/Models.ts"
import { InvalidRequest, ModelNotFound } from "../../../shared/contract/JobError.ts"
import type { Operation, Workload } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { strictTranslation, translationHeader } from "../../../shared/contract/Translation.ts"
import type { PriorityClass } from "../../../shared/contract/PriorityClass.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { Admission, type Settle } from "../request/Admission.ts"
import { relay } from "../answer/AnswerRelay.ts"
import { authenticate } from "../request/Authentication.ts"
import { DecodeTurns } from "../request/DecodeTurns.ts"
import type { RequestError } from "../errors/IngressError.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import { refusalOf } from "../request/TaskRequest.ts"
import { uncountedBytes, UploadBudget } from "../request/UploadBudget.ts"
import * as IncomingBody from "../request/IncomingBody.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"
import { CurrentRequest, type RequestRecord } from "../record/RequestRecord.ts"
import { respondTo } from "./Respond.ts"

/** A request that has been admitted. */
export interface AdmittedRequest {
  readonly operation: Operation
  readonly headers: Headers.Headers
  /** The key's id. */
  readonly tenant: string
  readonly weight: number
  readonly priority: PriorityClass
  readonly model: string
  readonly workload: Workload
  readonly pool: string
  /** The body as the client sent it. It is known to decode. */
  readonly body: Uint8Array
  /** How many results it asks for. */
  readonly count: number
  /** Whether the client asks for a stream. */
  readonly streams: boolean
  readonly traceparent: string
  readonly settle: Settle | undefined
}

type OperationHandler = (
  accepted: AdmittedRequest,
  record: RequestRecord
) => Effect.Effect<HttpServerResponse.HttpServerResponse, RequestError>

/** The route of the operations behind one path of the router. */
const routeOf = Effect.fnUntraced(function*(group: PathTemplate.RouteGroup, handler: OperationHandler) {
  const keys = yield* KeyRing
  const offered = yield* Models
  const admission = yield* Admission
  const { bodies } = yield* JobClient
  const turns = yield* DecodeTurns

  /** Steps that need no waiting run synchronously, because a fiber's steps would cost more than their work. */
  const handle = (
    request: HttpServerRequest.HttpServerRequest,
    { model: pathModel, operation }: PathTemplate.Match
  ) =>
  (record: RequestRecord) => {
    const { headers } = record
    const perform = (key: ApiKey, body: Uint8Array, budget: UploadBudget) => {
      // outside the closure of the decoded body, which would otherwise stay in memory until the answer has ended
      const serve =
        (name: string, { pool, workload }: OfferedModel, count: number, streams: boolean) =>
        (settle: Settle | undefined) => {
          // from here on the job counts its body; a task has no job
          if (operation.kind !== "task") budget.release()
          return handler({
            operation,
            headers,
            tenant: key.id,
            weight: key.weight,
            priority: key.priorityClass,
            model: name,
            workload,
            pool,
            body,
            count,
            streams,
            traceparent: TraceParent.format(record.span),
            settle
          }, record)
        }
      return Effect.flatMapEager(
        turns.inTurn(key.id, body.length, () => IncomingBody.decode(operation, headers, body)),
        (decoded) =>
          Effect.flatMapEager(findModel(operation, pathModel ?? decoded.model), ({ model, name }) => {
            record.setModel(operation, name)
            const refusal = refusalOf(operation, name, model, decoded)
            if (refusal !== undefined) return Effect.fail(refusal)
            const admitted = { operation, model: name, decoded, bytes: body.length }
            return admission.admit(key, admitted, serve(name, model, decoded.n ?? 1, operation.streams(decoded)))
          })
      )
    }
    const readAndPerform = (key: ApiKey) => {
      const budget = new UploadBudget(bodies, key.id)
      const served = Effect.flatMap(
        IncomingBody.read(operation, request, headers, budget),
        (body) => perform(key, body, budget)
      )
      // most bodies are too small to be counted
      return Number(headers["content-length"]) < uncountedBytes
        ? served
        : Effect.ensuring(served, Effect.sync(() => budget.release()))
    }
    return Effect.flatMap(
      authenticate(keys, headers, operation.dialect),
      (key) =>
        Effect.flatMapEager(checkHeaders(operation, headers), () => {
          record.setKey(key.id)
          record.answerHeaders = admission.headers(key, operation.dialect)
          return readAndPerform(key)
        })
    )
  }

  const findModel = (
    operation: Operation,
    name: string | null | undefined
  ): Effect.Effect<{ readonly name: string; readonly model: OfferedModel }, InvalidRequest | ModelNotFound> => {
    if (name === undefined || name === null) return Effect.fail(InvalidRequest.at("model", "is required"))
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
      ? respondTo(record, "none", "openai", () => Effect.fail(RouteTemplate.notFound(request.method, request.url)))
      : respondTo(record, matched.operation.name, matched.operation.dialect, handle(request, matched))
  })
  return HttpRouter.route("POST", group.path, route)
})

type RouteContext = HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext | CurrentRequest

/** The routes of these operations. */
export const routesOf = (operations: ReadonlyArray<Operation>, handler: OperationHandler) =>
  Effect.forEach(PathTemplate.groups(operations), (group) => routeOf(group, handler))

/** Submits requests as jobs and relays their answers. */
const relayJobs = Effect.gen(function*() {
  const jobs = yield* JobClient
  const clock = yield* Clock.Clock
  const queueTimeoutMs = yield* queueTimeout
  const handler: OperationHandler = ({ count: _count, headers, operation, settle, streams, ...accepted }, record) => {
    const timeoutMs = Math.min(queueTimeoutMs, clientQueueTimeoutMs(headers["x-stainless-timeout"]))
    return relay({
      jobs,
      dialect: operation.dialect,
      record,
      settle,
      streams,
      request: {
        ...accepted,
        parent: record.span,
        operation: operation.name,
        contentType: headers["content-type"] ?? "application/json",
        headers: forwardedHeaders(operation, headers),
        deadline: clock.currentTimeMillisUnsafe() + timeoutMs
      }
    })
  }
  return handler
})

/** Checks only that there is a version: the provider knows which ones exist. */
const checkHeaders = (operation: Operation, headers: Headers.Headers): Effect.Effect<void, InvalidRequest> => {
  const translation = headers[translationHeader]
  if (translation !== undefined && translation !== strictTranslation) {
    return Effect.fail(InvalidRequest.at(translationHeader, `must be '${strictTranslation}' or left out`))
  }
  const names = operation.versionHeaders
  if (names === undefined) return Effect.void
  const name = names.find((name) => headers[name]?.trim())
  if (name !== undefined) return Effect.void
  const message = `the header ${names.join(" or ")} is required, such as 2023-06-01`
  return Effect.fail(InvalidRequest.at(names[0] ?? "", message, "invalid_version"))
}

/** The request headers that go into the job. */
const forwardedHeaders = (
  { headers: further = [], versionHeaders = [] }: Operation,
  headers: Headers.Headers
): Readonly<Record<string, string>> | undefined => {
  const names = [...versionHeaders, ...further].filter((name) => headers[name] !== undefined)
  return names.length === 0 ? undefined : Struct.pick(headers, names)
}

/** The share of a client's timeout that a request may spend in the queue. */
const queueShare = 0.8

/** The queue timeout from the client's own timeout, in seconds, which official clients send. */
const clientQueueTimeoutMs = (seconds: string | undefined): number => {
  const value = Number(seconds)
  return value > 0 ? queueShare * value * 1_000 : Number.POSITIVE_INFINITY
}

export const layer = Layer.unwrap(
  Effect.map(
    Effect.flatMap(relayJobs, (handler) => routesOf(operations.filter(({ kind }) => kind !== "task"), handler)),
    HttpRouter.addAll
  )
).pipe(Layer.provide(DecodeTurns.layer))
