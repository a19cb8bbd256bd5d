/**
 * The connection of a process to NATS: one connection, one outbox, one identity on the bus.
 *
 * It reconnects for ever; while it is away, `connected` is false and whoever needs it has to bear that within its own
 * deadline.
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/nats-core"
import { createInbox, nuid } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { Clock, Config, Context, Effect, Layer, Schema, Stream } from "effect"
import * as Metrics from "../telemetry/Metrics.ts"
import { ServiceName } from "../telemetry/ServiceName.ts"
import * as Credentials from "./Credentials.ts"
import * as Limits from "./Limits.ts"
import { Outbox } from "./Outbox.ts"
import { inboxPrefix } from "./Subjects.ts"

/** The server could not be reached or is older than what the gateway needs. */
export class NatsUnavailable extends Schema.TaggedError<NatsUnavailable>()("NatsUnavailable", {
  servers: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    const servers = this.servers.replaceAll(/[^/,\s]*@/g, "")
    return `NATS at ${servers} cannot be used (${this.detail}): start a server there, or name another in NATS_URL`
  }
}

export class Nats extends Context.Service<Nats, {
  readonly connection: NatsConnection
  readonly outbox: Outbox
  /** Unique to this process and its start: base62, safe as a subject token. */
  readonly id: string
  readonly isConnected: () => boolean
  /**
   * Whether the connection stands, and not just since a moment ago: after the server was away others may still be on
   * their way back, and that nobody listens on their subjects says nothing about them.
   */
  readonly isSettled: () => boolean
  /** For how long the connection has been lost, in milliseconds; 0 while it stands. */
  readonly awayForMs: () => number
  /** A subject that is only this service's to hear, for answers. */
  readonly inbox: () => string
  /** Hears every message of a subject. What `receive` throws is logged: in the client's reader it would end the connection. */
  readonly subscribe: (subject: string, receive: (message: Msg) => void) => Subscription
  /**
   * Runs after every reconnect, when the server may be another one and may have forgotten what it held in memory.
   * Returns how to stop listening.
   */
  readonly onReconnect: (listener: () => void) => () => void
}>()("shared/bus/Nats") {
  /** Reads `NATS_URL` (several servers, separated by commas), and what `Credentials.ts` reads. */
  static readonly layer = Layer.effect(
    Nats,
    Effect.gen(function*() {
      const servers = yield* Config.String("NATS_URL").pipe(Config.withDefault("nats://127.0.0.1:4222"))
      const credentials = yield* Credentials.options
      const service = yield* ServiceName
      const run = Effect.runForkWith(yield* Effect.context<never>())

      const connection = yield* Effect.acquireRelease(
        Effect.tryPromise({
          try: () =>
            connect({
              ...behaviour,
              servers: servers.split(",").map((server) => server.trim()),
              ...credentials,
              name: service,
              inboxPrefix: inboxPrefix(service)
            }),
          catch: (cause) =>
            new NatsUnavailable({ servers, detail: cause instanceof Error ? cause.message : "cannot connect" })
        }),
        (connection) => Effect.promise(() => connection.close()).pipe(Effect.timeoutOption("2 seconds"))
      )
      const version = connection.info?.version ?? "unknown"
      if (!isSupported(version)) {
        return yield* new NatsUnavailable({ servers, detail: `version ${version} is older than ${oldest.join(".")}` })
      }

      const clock = yield* Clock.Clock
      let awaySince: number | undefined
      let backSince = Number.NEGATIVE_INFINITY
      const isConnected = () => awaySince === undefined && !connection.isClosed()
      yield* Metrics.observe(Metrics.natsConnected(), () => isConnected() ? 1 : 0)
      // what has not happened yet is 0, so that the first time is seen
      Metrics.update(Metrics.natsReconnects(), 0)
      Metrics.update(Metrics.natsErrors(), 0)
      for (const request of ["provision", "confirm", "submit"]) Metrics.update(Metrics.jetStreamErrors(request), 0)
      const reconnected = new Set<() => void>()
      const outbox = new Outbox(connection, (subject, cause) => {
        // after close nothing can be sent and nobody is left to care
        if (connection.isClosed()) return
        run(
          Effect.logWarning("NATS client refused a message", { subject: subject.split(".")[0], cause: String(cause) })
        )
      })

      yield* Stream.fromAsyncIterable(connection.status(), Effect.die).pipe(
        Stream.runForEach((status) => {
          switch (status.type) {
            case "disconnect":
              awaySince ??= clock.currentTimeMillisUnsafe()
              outbox.hold()
              return Effect.logWarning("NATS connection lost")
            case "reconnect":
              awaySince = undefined
              backSince = clock.currentTimeMillisUnsafe()
              outbox.releaseAfter(Limits.holdMs)
              Metrics.update(Metrics.natsReconnects(), 1)
              for (const listener of reconnected) listener()
              return Effect.logInfo("NATS connection is back")
            case "error":
              Metrics.update(Metrics.natsErrors(), 1)
              return Effect.logWarning("NATS reported an error", { error: status.error.message })
            default:
              return Effect.void
          }
        }),
        Effect.forkScoped
      )
      return Nats.of({
        connection,
        outbox,
        id: nuid.next(),
        isConnected,
        isSettled: () => awaySince === undefined && clock.currentTimeMillisUnsafe() - backSince > settlingMs,
        awayForMs: () => awaySince === undefined ? 0 : clock.currentTimeMillisUnsafe() - awaySince,
        inbox: () => createInbox(inboxPrefix(service)),
        subscribe: (subject, receive) =>
          connection.subscribe(subject, {
            callback: (error, message) => {
              if (error !== null) return
              try {
                receive(message)
              } catch (cause) {
                run(Effect.logError("a message could not be dealt with", cause))
              }
            }
          }),
        onReconnect: (listener) => {
          reconnected.add(listener)
          return () => void reconnected.delete(listener)
        }
      })
    })
  )
}

/** How a connection behaves, whichever server it is to. Times are in milliseconds. */
const behaviour = {
  maxReconnectAttempts: -1,
  // rights may be on their way to the server: while a key is changed it may be unknown there for a moment
  ignoreAuthErrorAbort: true,
  reconnectTimeWait: Limits.reconnectMs.wait,
  reconnectJitter: Limits.reconnectMs.jitter,
  pingInterval: 5_000,
  maxPingOut: 2,
  timeout: 5_000,
  noAsyncTraces: true,
  /**
   * How much the client gathers before it writes without waiting for the end of the turn, in bytes. Its own default of
   * 32 KiB is a handful of answers, and writes several times where once is enough. An option without a type.
   */
  pendingLimit: 512 * 1024
} as const

/** Everyone is back within this many milliseconds of a server's return: many times `reconnectMs`. */
const settlingMs = 3_000

/** The server of Debian 12. */
const oldest = [2, 9, 10] as const

const isSupported = (version: string): boolean => {
  const parts = version.split(".").map((part) => Number.parseInt(part, 10))
  for (const [index, wanted] of oldest.entries()) {
    const part = parts[index] ?? 0
    if (part !== wanted) return part > wanted
  }
  return true
}
