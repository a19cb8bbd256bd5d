/**
 * The connection of a process to NATS: one connection, one outbox, one identity on the bus.
 *
 * It reconnects for ever; while it is away, `connected` is false and whoever needs it has to bear that within its own
 * deadline.
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/nats-core"
import { createInbox, nuid } from "@nats-io/nats-core"
import { Clock, Config, Context, Effect, Layer, Stream } from "effect"
import * as Metrics from "../telemetry/Metrics.ts"
import { ServiceName } from "../telemetry/ServiceName.ts"
import { connect, type NatsUnavailable, patiently } from "./Connect.ts"
import * as Credentials from "./Credentials.ts"
import * as Limits from "./Limits.ts"
import { Outbox } from "./Outbox.ts"
import { steady } from "./Steady.ts"
import { inboxPrefix } from "./Subjects.ts"

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
  /**
   * For a command, which fails where no server answers. Reads `NATS_URL` (several servers, separated by commas), and what
   * `Credentials.ts` reads.
   */
  static readonly layer = Layer.effect(Nats, Effect.suspend(() => make((once) => once)))

  /** For a service, which waits for a server: see `Connect.ts`. */
  static readonly layerPatient = Layer.effect(Nats, Effect.suspend(() => make(patiently)))
}

const make = <E>(
  getting: (once: Effect.Effect<NatsConnection, NatsUnavailable>) => Effect.Effect<NatsConnection, E>
) =>
  Effect.gen(function*() {
    const servers = yield* Config.String("NATS_URL").pipe(Config.withDefault("nats://127.0.0.1:4222"))
    const credentials = yield* Credentials.options
    const service = yield* ServiceName
    const run = Effect.runForkWith(yield* Effect.context<never>())

    const connection = yield* Effect.acquireRelease(
      getting(connect(servers, { ...credentials, name: service, inboxPrefix: inboxPrefix(service) })),
      (connection) => Effect.promise(() => connection.close()).pipe(Effect.timeoutOption("2 seconds")),
      { interruptible: true }
    )

    const now = steady(yield* Clock.Clock)
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
            awaySince ??= now()
            outbox.hold()
            return Effect.logWarning("NATS connection lost")
          case "reconnect":
            awaySince = undefined
            backSince = now()
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
      isSettled: () => awaySince === undefined && now() - backSince > settlingMs,
      awayForMs: () => awaySince === undefined ? 0 : now() - awaySince,
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

/** Everyone is back within this many milliseconds of a server's return: many times `reconnectMs`. */
const settlingMs = 3_000
