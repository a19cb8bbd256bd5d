/** JetStream as the gateway uses it: its failures, how long they are retried, and streams that are opened or created. */
import { JetStreamApiError, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream"
import { Config, Effect, Schedule, Schema } from "effect"
import { atLeast } from "../contract/Fields.ts"

/** JetStream did not do what was asked. Worth another try: it may be electing a leader. */
export class JetStreamFailed extends Schema.TaggedError<JetStreamFailed>()("JetStreamFailed", {
  detail: Schema.String
}) {
  override get message() {
    return `JetStream: ${this.detail}`
  }
}

/** Asks JetStream for something, with its refusals as `JetStreamFailed`. */
export const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new JetStreamFailed({ detail: cause instanceof Error ? cause.message : String(cause) })
  })

/** Whether a refusal says that there is no such thing. */
export const isMissing = (cause: unknown): boolean => cause instanceof JetStreamApiError && cause.status === 404

export type NamedStream = Partial<StreamConfig> & { readonly name: string }

export const ensureStream = async (manager: JetStreamManager, config: NamedStream) => {
  const known = await manager.streams.info(config.name).catch((cause) => {
    if (isMissing(cause)) return undefined
    throw cause
  })
  const made = known ?? await manager.streams.add(config)
  // an old server leaves out what it does not know, without a word
  if (isOtherKind(config, made.config)) throw otherKind(config.name)
}

/** What a stream is made for can never be changed. */
export const isOtherKind = (wanted: Partial<StreamConfig>, { retention, storage }: StreamConfig): boolean =>
  (wanted.retention ?? retention) !== retention || (wanted.storage ?? storage) !== storage
export const otherKind = (name: string): Error => new Error(`stream ${name} exists with another retention or storage`)

/** `NATS_REPLICAS`: how many servers keep each stream, bucket and store, 1 to 5. */
export const replicas = Config.schema(atLeast(1), "NATS_REPLICAS").pipe(Config.withDefault(1))

/**
 * With `GATEWAY_PROVISION=false` a service creates nothing and only opens what is there, as in production, where
 * `Provision.ts` is run before it and it has no right to.
 */
export const mayCreate = Config.Boolean("GATEWAY_PROVISION").pipe(Config.withDefault(true))

/** Backing off from 50 ms to a second, without end: for what must come back before anything else can work. */
export const patiently = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(
  Schedule.jittered
)

/** What fails for a moment while leaders are elected is not worth a word: after so many tries a second or two have passed. */
const toldAtTry = 6

/** For `Effect.retry`: as long as it is JetStream that fails. Whoever still waits after a while says for what. */
export const whileJetStreamFails = {
  while: (error: { readonly _tag: string }): boolean => error._tag === "JetStreamFailed",
  schedule: patiently.pipe(
    Schedule.tap(({ attempt, input }) =>
      attempt === toldAtTry
        ? Effect.logWarning("waiting for JetStream", { detail: input instanceof Error ? input.message : String(input) })
        : Effect.void
    )
  )
}
