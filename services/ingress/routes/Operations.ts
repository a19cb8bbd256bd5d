/**
 * The one handler of every operation: it authenticates, decodes, finds the model, admits and answers, either with the
 * relayed answer of a job or, for the operations in `Tasks`, with a task.
 */
import { Clock, Effect, Fiber, Layer, Option, Random, Result } from "effect"
import { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import type { JobRequest } from "../../../shared/bus/ingress/JobRequest.ts"
import { queueTimeout } from "../../../shared/bus/ingress/QueueTimeout.ts"
import { Models, type OfferedModel } from "../../../shared/catalogue/Models.ts"
import { InvalidRequest, ModelNotFound, ModelUnsuitable, Unavailable } from "../../../shared/contract/JobError.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { strictTranslation, translationHeader } from "../../../shared/contract/ChatHeaders.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { Owners } from "../../../shared/records/Owners.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import type { AdmittedRequest, Wish } from "../request/AdmittedRequest.ts"
import { Admission, type AdmissionRequest, demandOf, type Entry, type Settle } from "../request/Admission.ts"
import { relay } from "../answer/AnswerRelay.ts"
import { authenticate } from "../request/Authentication.ts"
import { DecodeTurns } from "../request/DecodeTurns.ts"
import * as ForwardedHeaders from "../request/ForwardedHeaders.ts"
import { Exchange, type Exchanges } from "../exchange/Exchange.ts"
import { BodyMemory } from "../body/BodyMemory.ts"
import type { UploadBudget } from "../body/UploadBudget.ts"
import { Front } from "../exchange/Front.ts"
import * as AnswerTaskRoutes from "../owned/AnswerTasks.ts"
import { outlives as outlivesIn } from "../request/Outlives.ts"
import { refusalOf } from "../request/TaskRequest.ts"
import * as IncomingBody from "../request/IncomingBody.ts"
import { RequestRecords } from "../record/RequestRecords.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import { ShadowTraffic } from "./ShadowTraffic.ts"

/** A request whose body has arrived. */
interface Upload {
  readonly exchange: Exchange
  readonly key: ApiKey
  readonly entry: Entry | undefined
  readonly budget: UploadBudget
  readonly body: Uint8Array
}

type Serve = (admitted: AdmittedRequest, exchange: Exchange) => void

/** Takes the requests of these operations, and passes those that are admitted to `serve`. */
export const serveOperations = Effect.fnUntraced(function*(operations: ReadonlyArray<Operation>, serve: Serve) {
  const keys = yield* KeyRing
  const offered = yield* Models
  const admission = yield* Admission
  const owners = yield* Owners
  const memory = yield* BodyMemory
  const turns = yield* DecodeTurns
  const records = yield* RequestRecords
  const front = yield* Front
  const { answer, join } = yield* AnswerTaskRoutes.serve
  const scope = yield* Effect.scope
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const exchanges: Exchanges = { records, fork: (effect) => Fiber.runIn(runFork(effect), scope) }

  const begin = (exchange: Exchange, pathModel: string | undefined) => {
    const { headers, operation, record } = exchange
    exchange.run(authenticate(keys, exchange, operation.dialect), (key) => {
      record.setKey(key.id)
      record.answerHeaders = admission.headers(key, operation.dialect)
      const refusal = wrongHeader(operation, headers)
      if (refusal !== undefined) return exchange.fail(refusal)
      const announced = IncomingBody.announced(operation, headers)
      if (Result.isFailure(announced)) return exchange.fail(announced.failure)
      exchange.run(enter(exchange, key), (entry) => {
        if (entry !== undefined) exchange.whenRefused(() => entry.giveBack())
        const { source } = exchange
        const budget = memory.upload(key.id, source)
        const stop = IncomingBody.read(source, announced.success, budget, (body) =>
          exchange.guard(() => {
            if (Result.isFailure(body)) exchange.fail(body.failure)
            else decode({ exchange, key, entry, budget, body: body.success }, pathModel)
          }))
        exchange.whenClosed(stop)
      })
    })
  }

  /**
   * Takes from the key's limits what needs no body, so that no key can have more bodies sent than requests admitted. Nothing for a
   * request that may join an earlier one. Work that may run later takes a concurrent request only then.
   */
  const enter = ({ headers, operation }: Exchange, key: ApiKey) =>
    operation.kind !== "task" && headers["idempotency-key"] !== undefined
      ? Effect.undefined
      : admission.enter(key, operation.hasBackground !== true && headers["prefer"] === undefined)

  const decode = (upload: Upload, pathModel: string | undefined) => {
    const { body, budget, entry, exchange, key } = upload
    const { headers, operation } = exchange
    const decoding = turns.inTurn(key.id, body.length, () => IncomingBody.decode(operation, headers, body))
    exchange.run(decoding, (decoded) => {
      const named = pathModel ?? decoded.model
      const name = named ?? operation.defaultModel
      if (name === undefined || name === null) return exchange.fail(InvalidRequest.at("model", "is required"))
      const model = offered.current().models.get(name)
      if (model === undefined) return exchange.fail(new ModelNotFound({ model: name }))
      if (!operation.workloads.includes(model.workload)) {
        const { workload } = model
        // says nothing about models that the key may not use
        return exchange.fail(
          admission.allows(key, name)
            ? new ModelUnsuitable({ model: name, workload, operation: operation.name })
            : new ModelNotFound({ model: name })
        )
      }
      exchange.record.setModel(operation, name)
      const refusal = refusalOf(operation, name, model, decoded)
      if (refusal !== undefined) return exchange.fail(refusal)
      const outlives = outlivesIn({ operation, headers, model: name, request: decoded, body })
      if (outlives instanceof InvalidRequest) return exchange.fail(outlives)
      const isLater = outlives !== undefined
      const { highestPrice, maxOutputTokens } = model
      const asked: AdmissionRequest = {
        ...{ operation, model: name, decoded, bytes: body.length, isLater },
        ...{ highestPrice, maxOutputTokens }
      }
      const streams = operation.streams(decoded)
      const wish: Wish = {
        count: decoded.n ?? 1,
        streams,
        isPlain: !streams && pathModel === undefined && typeof named === "string",
        outlives,
        tokens: isLater ? demandOf(asked).tokens : 0
      }
      const proceed = () => exchange.run(admission.admit(key, asked, entry), admit(upload, name, model, wish))
      const owner = outlives?.keyed === undefined ? undefined : owners.known(key.owner)
      if (outlives === undefined || owner === undefined) return proceed()
      // a request that joins an earlier one takes nothing from the limits
      exchange.run(join(owner, outlives), (task) => {
        if (Option.isNone(task)) return proceed()
        budget.release()
        answer(task.value, { owner, streams, outlives, body }, exchange)
      })
    })
  }

  /** The owner of a request. Creates it only for requests that write records; others need no owner that has stored nothing. */
  const ownerFor = (
    { records }: Operation,
    { owner: id }: ApiKey,
    outlives: Wish["outlives"]
  ): Effect.Effect<Owner | undefined, Unavailable> => {
    const owner = records === undefined && outlives === undefined ? undefined : owners.known(id)
    if (owner !== undefined || (records !== "writes" && outlives === undefined)) return Effect.succeed(owner)
    return Effect.catchEager(owners.add(id), () => Effect.fail(Unavailable.briefly()))
  }

  /** Outside the closure that holds the decoded body, so that the body's memory can be freed before the answer has ended. */
  const admit = (
    { body, budget, exchange, key }: Upload,
    model: string,
    { pool, shadow, workload }: OfferedModel,
    { count, isPlain, outlives, streams, tokens }: Wish
  ) =>
  (settle: Settle | undefined) => {
    const { headers, operation, record } = exchange
    if (settle !== undefined) settleWhenClosed(exchange, settle)
    exchange.run(ownerFor(operation, key, outlives), (owner) => {
      serve({
        operation,
        headers,
        tenant: key.id,
        ownerId: key.owner,
        owner,
        weight: key.weight,
        priority: key.priorityClass,
        model,
        workload,
        pool,
        body,
        shadow,
        count,
        streams,
        isPlain,
        outlives,
        tokens,
        traceparent: TraceParent.format(record.span),
        settle,
        handOverBody: () => budget.handOver(),
        releaseBody: () => budget.release()
      }, exchange)
    })
  }

  yield* front.add(operations, (match, request, response) => {
    const exchange = new Exchange(exchanges, match, request, response)
    exchange.guard(() => begin(exchange, match.model))
  })
})

/** A function of its own: a closure over the admitted request would keep its body in memory. */
const waitOf = (admission: Admission["Service"], model: string, settle: Settle | undefined) => (provider: string) =>
  admission.wait(model, settle, provider)

/** A function of its own: a closure within `admit` would keep the body in memory until the response closes. */
const settleWhenClosed = (exchange: Exchange, settle: Settle): void => exchange.whenClosed(() => settle(undefined))

/** Submits requests as jobs and relays their answers. */
const relayJobs = Effect.gen(function*() {
  const jobs = yield* JobClient
  const admission = yield* Admission
  const clock = yield* Clock.Clock
  const queueTimeoutMs = yield* queueTimeout
  const models = yield* Models
  const { create } = yield* AnswerTaskRoutes.serve
  const traffic = new ShadowTraffic(jobs, yield* Random.Random)
  return (admitted: AdmittedRequest, exchange: Exchange) => {
    const { headers, operation, settle, shadow, streams } = admitted
    if (admitted.outlives !== undefined) {
      return create(admitted, ForwardedHeaders.forwardedHeaders(operation, headers), exchange)
    }
    const timeoutMs = Math.min(queueTimeoutMs, clientQueueTimeoutMs(headers["x-stainless-timeout"]))
    const request: JobRequest = {
      workload: admitted.workload,
      pool: admitted.pool,
      operation: operation.name,
      model: admitted.model,
      tenant: admitted.tenant,
      owner: admitted.owner,
      weight: admitted.weight,
      priority: admitted.priority,
      body: admitted.body,
      reservedBytes: admitted.handOverBody(),
      isPlain: admitted.isPlain,
      traceparent: admitted.traceparent,
      parent: exchange.record.span,
      contentType: headers["content-type"] ?? "application/json",
      headers: ForwardedHeaders.forwardedHeaders(operation, headers),
      deadline: clock.currentTimeMillisUnsafe() + timeoutMs
    }
    relay({ jobs, exchange, settle, streams, request, onWait: waitOf(admission, admitted.model, settle) })
    if (shadow !== undefined) traffic.copy(request, shadow, models.current())
  }
})

/** The error of a missing or invalid header. A version may have any value, because the provider knows which ones exist. */
const wrongHeader = (operation: Operation, headers: RequestHeaders): InvalidRequest | undefined => {
  const tooLong = ForwardedHeaders.refusalOf(operation, headers)
  if (tooLong !== undefined) return tooLong
  const translation = headers[translationHeader]
  if (translation !== undefined && translation !== strictTranslation) {
    return InvalidRequest.at(translationHeader, `must be '${strictTranslation}' or left out`)
  }
  const names = operation.versionHeaders
  if (names === undefined || names.some((name) => headers[name]?.trim())) return undefined
  const message = `the header ${names.join(" or ")} is required, such as 2023-06-01`
  return InvalidRequest.at(names[0] ?? "", message, "invalid_version")
}

/** The share of a client's timeout that a request may spend in the queue. */
const queueShare = 0.8

/** The queue timeout from the client's own timeout, in seconds, which official clients send. */
const clientQueueTimeoutMs = (seconds: string | undefined): number => {
  const value = Number(seconds)
  return value > 0 ? queueShare * value * 1_000 : Number.POSITIVE_INFINITY
}

export const layer = Layer.effectDiscard(
  Effect.flatMap(relayJobs, (serve) => serveOperations(operations.filter(({ kind }) => kind !== "task"), serve))
).pipe(Layer.provide(DecodeTurns.layer))
