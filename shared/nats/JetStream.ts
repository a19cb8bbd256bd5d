/** JetStream as the gateway uses it: its errors, their retries, and streams that are opened or created. */
import { JetStreamApiError, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream"
import { Config, Effect, Schedule, Schema } from "effect"
import { atLeast } from "../contract/Fields.ts"

/** A request to JetStream failed. A retry may succeed: JetStream may be electing a leader. */
export class JetStreamFailed extends Schema.TaggedError<JetStreamFailed>()("JetStreamFailed", {
  detail: Schema.String
}) {
  override get message() {
    return `JetStream: ${this.detail}`
  }
}

export const jetStreamFailed = (cause: unknown): JetStreamFailed =>
  new JetStreamFailed({ detail: cause instanceof Error ? cause.message : String(cause) })

/** Runs a request to JetStream and maps its errors to `JetStreamFailed`. */
export const attempt = <A>(run: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: jetStreamFailed })

/** The answer to a request for information; `undefined` if JetStream answers that there is nothing of that name. */
export const orMissing = <A>(answer: Promise<A>): Promise<A | undefined> =>
  answer.catch((cause) => {
    if (cause instanceof JetStreamApiError && cause.status === 404) return undefined
    throw cause
  })

export type NamedStream = Partial<StreamConfig> & { readonly name: string }

export const ensureStream = async (manager: JetStreamManager, config: NamedStream) => {
  const made = await orMissing(manager.streams.info(config.name)) ?? await manager.streams.add(config)
  // an old server silently drops options that it does not know
  if (isOtherKind(config, made.config)) throw otherKind(config.name)
}

/** Retention and storage of a stream can never change. */
export const isOtherKind = (wanted: Partial<StreamConfig>, { retention, storage }: StreamConfig): boolean =>
  (wanted.retention ?? retention) !== retention || (wanted.storage ?? storage) !== storage
export const otherKind = (name: string): Error => new Error(`stream ${name} exists with another retention or storage`)

/** `NATS_REPLICAS`: how many servers store each stream, bucket and object store, 1 to 5. */
export const replicas = Config.schema(atLeast(1), "NATS_REPLICAS").pipe(Config.withDefault(1))

/**
 * With `GATEWAY_PROVISION=false` a service creates nothing and only opens what exists. In production `Provision.ts` runs
 * first, and services lack the right to create.
 */
export const mayCreate = Config.Boolean("GATEWAY_PROVISION").pipe(Config.withDefault(true))

/** The back-off of every retry to NATS: from 50 ms to a second, without end. */
export const backOff = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(
  Schedule.jittered
)

/** Brief failures during a leader election are not logged: this many retries take a second or two. */
const warnAtRetry = 6

/** For `Effect.retry`: retries `JetStreamFailed` without end, and logs what it waits for. */
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
