/** The basics of all use of JetStream: errors, retries, and the creation of streams. */
import { JetStreamApiError, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream"
import { InvalidArgumentError } from "@nats-io/nats-core"
import { Config, Effect, Schedule, Schema } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { Unavailable } from "../contract/JobError.ts"

/** A request to JetStream failed. A retry may succeed: JetStream may be electing a leader. */
export class JetStreamFailed extends Schema.TaggedError<JetStreamFailed>()("JetStreamFailed", {
  detail: Schema.String
}) {
  override get message() {
    return `JetStream: ${this.detail}`
  }
}

/** What an operator changes if JetStream refuses a stream, by the server's error code (its errors.json). */
const remedies: ReadonlyMap<number, string> = new Map([
  [10002, "raise the account's JetStream limits"],
  [10005, "start as many servers as NATS_REPLICAS says, each with enough memory and disk"],
  [10023, "raise max_memory_store and max_file_store in the server's jetstream settings"],
  [10027, "raise the account's limit of streams"],
  [10028, "raise max_memory_store in the server's jetstream settings, or max_mem of the account"],
  [10047, "raise max_file_store in the server's jetstream settings, or max_file of the account"],
  [10074, "start as many servers as NATS_REPLICAS says, or set NATS_REPLICAS to their number"],
  [10113, "allow the account streams without a limit of bytes"]
])

const detailOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const remedy = cause instanceof JetStreamApiError ? remedies.get(cause.code) : undefined
  return remedy === undefined ? cause.message : `${cause.message}: ${remedy}`
}

export const jetStreamFailed = (cause: unknown): JetStreamFailed => new JetStreamFailed({ detail: detailOf(cause) })

/** Fails with `Unavailable` where JetStream fails; other failures stay as they are. */
export const asUnavailable = <A, E, R>(effect: Effect.Effect<A, E | JetStreamFailed, R>) =>
  Effect.catchTag(effect, "JetStreamFailed", () => Effect.fail(Unavailable.briefly()))

/** The client refused to send a message because it is larger than the server's `max_payload`. */
class MessageTooLarge extends Schema.TaggedError<MessageTooLarge>()("MessageTooLarge", {}) {
  override readonly message = "A message is larger than the NATS server accepts"
}

const errorOf = (cause: unknown): JetStreamFailed | MessageTooLarge =>
  cause instanceof InvalidArgumentError && cause.message.includes("max_payload")
    ? new MessageTooLarge()
    : jetStreamFailed(cause)

/**
 * Runs a request to JetStream and maps its errors to `JetStreamFailed`. A message that is too large for the server is a defect: no
 * retry can send it, so its writer must bound it.
 */
export const attempt = <A>(run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, JetStreamFailed> =>
  Effect.tryPromise({ try: run, catch: errorOf }).pipe(Effect.catchTag("MessageTooLarge", Effect.die))

/** The answer to a request; `undefined` if JetStream answers that the thing does not exist. */
export const orMissing = <A>(answer: Promise<A>): Promise<A | undefined> =>
  answer.catch((cause) => {
    if (cause instanceof JetStreamApiError && cause.status === 404) return undefined
    throw cause
  })

export type NamedStream = Partial<StreamConfig> & { readonly name: string }

export const ensureStream = async (manager: JetStreamManager, config: NamedStream) => {
  const find = () => orMissing(manager.streams.info(config.name))
  const made = await find() ?? await manager.streams.add(config).catch(async (cause: unknown) => {
    // another process may have created it meanwhile, with a description of its own
    const found = await find()
    if (found === undefined) throw cause
    return found
  })
  // an old server silently drops options that it does not know
  requireKind(config, made.config)
}

/** Throws if an existing stream has another retention or storage, which can never change. */
export const requireKind = (wanted: Partial<StreamConfig>, { name, retention, storage }: StreamConfig): void => {
  if ((wanted.retention ?? retention) === retention && (wanted.storage ?? storage) === storage) return
  throw new Error(
    `stream ${name} exists with another retention or storage. A queue of jobs is on disk only if NATS_REPLICAS is above 1: is it set as ` +
      "when the stream was created?"
  )
}

const givenReplicas = Config.schema(atLeast(1), "NATS_REPLICAS")

/** Reads `NATS_REPLICAS`: how many servers store each stream, bucket and object store, 1 to 5; default 1. */
export const replicas = givenReplicas.pipe(Config.withDefault(1))

/** `NATS_REPLICAS` for what has a number of replicas already; `None` if it is not set. */
export const otherReplicas = Config.option(givenReplicas)

/**
 * Whether this process may create streams and buckets. Reads `GATEWAY_PROVISION` (default true); with `false` a service only opens
 * what exists. In production `Provision.ts` runs first, and services have no right to create.
 */
export const mayCreate = Config.Boolean("GATEWAY_PROVISION").pipe(Config.withDefault(true))

/** The back-off of every retry to NATS: from 50 ms to a second, forever. */
export const backOff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(
  Schedule.jittered
)

/** From this retry on, failures are logged. It comes after a second or two, so brief leader elections are not logged. */
const warnAtRetry = 6

/** Options for `Effect.retry`: retries `JetStreamFailed` forever, and logs the reason of a longer wait. */
export const whileJetStreamFails = {
  while: (error: { readonly _tag: string }): boolean => error._tag === "JetStreamFailed",
  schedule: backOff.pipe(
    Schedule.tap(({ attempt, input }) =>
      attempt === warnAtRetry
        ? Effect.logWarning("waiting for JetStream", { detail: input instanceof Error ? input.message : String(input) })
        : Effect.void
    )
  )
}
