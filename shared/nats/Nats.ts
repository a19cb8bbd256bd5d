/**
 * The connections of a process to NATS, one for each account that it is in: `Nats` for jobs and all that workers write,
 * `ControlNats` for keys, limits of keys, spending and sessions, which workers must not reach.
 *
 * Each reconnects for ever; while it is away, `isConnected` is false and its users bear that within their own deadlines.
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/nats-core"
import { createInbox, nuid } from "@nats-io/nats-core"
import { Clock, Config, Context, Effect, identity, Layer, Stream } from "effect"
import * as Metrics from "../telemetry/Metrics.ts"
import { ServiceName } from "../telemetry/ServiceName.ts"
import { connect, type NatsUnavailable, patiently } from "./Connect.ts"
import * as Credentials from "./Credentials.ts"
import { inboxPrefix } from "./Inbox.ts"
import { Outbox } from "./Outbox.ts"
import { holdMs } from "./Reconnect.ts"
import { steady } from "./Steady.ts"
import type { Account, InAccount } from "./Storage.ts"

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
  static readonly layer = Layer.effect(Nats, Effect.suspend(() => make("data", (once) => once)))

  /** For a service, which waits for a server: see `Connect.ts`. */
  static readonly layerPatient = Layer.effect(Nats, Effect.suspend(() => make("data", patiently)))
}

/** The connection to the control account. Where the server knows no accounts it reaches the same as `Nats` does. */
export class ControlNats extends Context.Service<ControlNats, Nats["Service"]>()("shared/bus/ControlNats") {
  /** For a command. Reads `NATS_URL`, and what `Credentials.ts` reads for the control account. */
  static readonly layer = Layer.effect(ControlNats, Effect.suspend(() => make("control", (once) => once)))

  /** For a service. */
  static readonly layerPatient = Layer.effect(ControlNats, Effect.suspend(() => make("control", patiently)))
}

/** Both connections of a command. */
export const layerBoth = ControlNats.layer.pipe(Layer.provideMerge(Nats.layer))

/** Both connections of a service, one after the other, so that it waits for NATS, and says so, once. */
export const layerBothPatient = ControlNats.layerPatient.pipe(Layer.provideMerge(Nats.layerPatient))

/** The connection to the account that something is kept in. */
export type NatsOf<K extends InAccount> = { readonly data: Nats; readonly control: ControlNats }[K["account"]]

export const natsOf = <K extends InAccount>({ account }: K): Effect.Effect<Nats["Service"], never, NatsOf<K>> =>
  // the type says for each account which service this asks for
  (account === "control" ? ControlNats : Nats) as unknown as Effect.Effect<Nats["Service"], never, NatsOf<K>>

const make = <E>(
  account: Account,
  getting: (once: Effect.Effect<NatsConnection, NatsUnavailable>) => Effect.Effect<NatsConnection, E>
) =>
  Effect.gen(function*() {
    const servers = yield* Config.String("NATS_URL").pipe(Config.withDefault("nats://127.0.0.1:4222"))
    const credentials = yield* Credentials.options(account)
    const service = yield* ServiceName
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const connected = Metrics.natsConnected(account)
    const reconnects = Metrics.natsReconnects(account)
    const errors = Metrics.natsErrors(account)

    const connection = yield* Effect.acquireRelease(
      getting(connect(servers, { ...credentials, name: service, inboxPrefix: inboxPrefix(service) }, account)),
      (connection) => Effect.promise(() => connection.close()).pipe(Effect.timeoutOption("2 seconds")),
      { interruptible: true }
    )

    const now = steady(yield* Clock.Clock)
    let awaySince: number | undefined
    let backSince = Number.NEGATIVE_INFINITY
    const isConnected = () => awaySince === undefined && !connection.isClosed()
    yield* Metrics.observe(connected, () => isConnected() ? 1 : 0)
    // what has not happened yet is 0, so that the first time is seen
    Metrics.update(reconnects, 0)
    Metrics.update(errors, 0)
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
            outbox.releaseAfter(holdMs)
            Metrics.update(reconnects, 1)
            for (const listener of reconnected) listener()
            return Effect.logInfo("NATS connection is back")
          case "error":
            Metrics.update(errors, 1)
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
  }).pipe(account === "data" ? identity : Effect.annotateLogs({ account }))

/** Everyone is back within this many milliseconds of a server's return: many times `reconnectMs`. */
const settlingMs = 3_000
