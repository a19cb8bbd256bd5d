/** Creates a batch for the requests in a file. */
import { Clock, Config, Effect } from "effect"
import { Batches, type Created } from "../../../../shared/batches/Batches.ts"
import { atLeast } from "../../../../shared/contract/Fields.ts"
import { InvalidRequest } from "../../../../shared/contract/JobError.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { operations } from "../../../../shared/contract/operations/operations.ts"
import type { Owner } from "../../../../shared/contract/Owner.ts"
import { type ClientFile, ClientFiles } from "../../../../shared/files/ClientFiles.ts"
import { KeyRing } from "../../../../shared/keys/KeyRing.ts"
import { asUnavailable } from "../../../../shared/nats/JetStream.ts"
import type { KeyedRequest } from "../../../../shared/records/KeyBindings.ts"
import * as TraceParent from "../../../../shared/telemetry/TraceParent.ts"
import type { RequestError } from "../../errors/IngressError.ts"
import * as PathTemplate from "../../paths/PathTemplate.ts"
import type { RequestHeaders } from "../../record/ServerSpan.ts"
import { jobErrorOf } from "../../request/Authentication.ts"
import { forwardedHeaders, refusalOf } from "../../request/ForwardedHeaders.ts"
import { keyReused } from "../../request/IdempotencyKey.ts"
import type { Asked } from "../OwnedRoutes.ts"

const defaultVersion = "2023-06-01"
const day = 24 * 60 * 60_000

/** Whether an operation's requests and answers are JSON, so that they can be lines of files. */
const isBatchable = ({ form, kind, responseTypes, streams }: Operation): boolean =>
  kind !== "task" && form === undefined && responseTypes === undefined && !streams({})

const batchable = operations.filter(isBatchable)
const match = PathTemplate.matcher(batchable)

/** The operation and the model of a batch's endpoint. */
export const endpointOf = (endpoint: string): Effect.Effect<PathTemplate.Match, InvalidRequest> => {
  const found = match(endpoint)
  const paths = batchable.map(({ paths: [path] }) => path).join(", ")
  return found === undefined
    ? Effect.fail(InvalidRequest.at("endpoint", `must be one of ${paths}`))
    : Effect.succeed(found)
}

/** The headers that travel with each request of a batch. */
const headersOf = (
  operation: Operation,
  headers: RequestHeaders
): Readonly<Record<string, string>> => {
  const { versionHeaders = [] } = operation
  const given = forwardedHeaders(operation, headers) ?? {}
  const version = versionHeaders.at(-1)
  return version === undefined || versionHeaders.some((name) => name in given)
    ? given
    : { ...given, [version]: defaultVersion }
}

export interface NewBatch {
  readonly endpoint: string
  readonly window: string
  readonly metadata: Readonly<Record<string, string>> | null
  /** Whether its file was made for it. */
  readonly ownsInput: boolean
}

/** Reads `GATEWAY_BATCH_WINDOW_MS`: the maximum duration of a batch in milliseconds, by default a day. */
export const createBatch = Effect.gen(function*() {
  const batches = yield* Batches
  const files = yield* ClientFiles
  const keys = yield* KeyRing
  const windowMs = yield* Config.schema(atLeast(1), "GATEWAY_BATCH_WINDOW_MS").pipe(Config.withDefault(day))
  return Effect.fnUntraced(function*(
    { headers, key, owner }: Asked,
    file: ClientFile,
    { endpoint, metadata, ownsInput, window }: NewBatch,
    keyed?: KeyedRequest
  ): Effect.fn.Return<Created, RequestError> {
    const { model, operation } = yield* endpointOf(endpoint)
    const refusal = refusalOf(operation, headers)
    if (refusal !== undefined) return yield* refusal
    const expires = (yield* Clock.currentTimeMillis) + Math.min(windowMs, day)
    if (file.expires < expires) {
      return yield* InvalidRequest.at("input_file_id", "expires before the batch does. Upload the file again")
    }
    // the quota refuses no results, so it refuses what would add to them
    yield* asUnavailable(files.checkQuota(owner))
    const { batchConcurrency } = yield* Effect.mapError(keys.find(key), jobErrorOf)
    return yield* keyReused(batches.create({
      owner,
      tenant: key,
      operation: operation.name,
      traceparent: yield* TraceParent.current,
      request: {
        endpoint,
        ...(model === undefined ? {} : { model }),
        input: file.id,
        ownsInput,
        total: file.lines,
        atOnce: batchConcurrency,
        window,
        expires,
        headers: headersOf(operation, headers),
        metadata
      }
    }, keyed))
  })
})

/**
 * Stores a file that is made for a batch, and creates the batch. Deletes the file if no batch has it. Once the file is stored, a client
 * that disconnects interrupts nothing; each step has a deadline.
 */
export const createWithFile = <R>(
  files: Pick<ClientFiles["Service"], "delete">,
  owner: Owner,
  store: Effect.Effect<ClientFile, RequestError, R>,
  create: (file: ClientFile) => Effect.Effect<Created, RequestError>
) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const file = yield* restore(store)
      const removed = Effect.ignore(files.delete(owner, file.id))
      const created = yield* Effect.onError(create(file), () => removed)
      if (created.batch.request.input !== file.id) yield* removed
      return created
    })
  )
