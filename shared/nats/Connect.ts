/**
 * Connects a process to NATS. A command tries once. A service, which may start before its server, retries for `NATS_WAIT_MS`.
 * Both fail immediately on an error that no retry can fix.
 */
import type { NatsConnection } from "@nats-io/nats-core"
import { errors } from "@nats-io/nats-core"
import type { NodeConnectionOptions } from "@nats-io/transport-node"
import { connect as dial } from "@nats-io/transport-node"
import { Config, Effect, Predicate, Result, Schedule, Schema, SemVer } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { variables } from "./Credentials.ts"
import { backOff, replicas } from "./JetStream.ts"
import { ServerChoice } from "./Reconnect.ts"
import type { Account } from "./Storage.ts"

/** No server is usable: none answers, or a server rejects the credentials, fails TLS or is too old. */
export class NatsUnavailable extends Schema.TaggedError<NatsUnavailable>()("NatsUnavailable", {
  servers: Schema.String,
  detail: Schema.String,
  /** What the operator can do about it. */
  advice: Schema.String,
  /** Whether a retry may succeed. */
  mayPass: Schema.Boolean
}) {
  override get message() {
    const servers = this.servers.replaceAll(/[^/,\s]*@/g, "")
    return `NATS at ${servers} cannot be used (${this.detail}): ${this.advice}`
  }
}

/** Tries every server once. `servers` are separated by commas; `account` is the account of the credentials in `options`. */
export const connect = (
  servers: string,
  options: NodeConnectionOptions,
  account: Account = "data",
  choice = new ServerChoice()
): Effect.Effect<NatsConnection, NatsUnavailable> =>
  Effect.callback<NatsConnection, NatsUnavailable>((resume) => {
    let isWanted = true
    const all = {
      ...defaults,
      ...options,
      reconnectToServer: choice.next,
      servers: servers.split(",").map((server) => server.trim())
    }
    dial(all).then(
      (connection) => {
        remember(connection, all.servers)
        return isWanted ? resume(Effect.succeed(connection)) : void connection.close()
      },
      (cause) => resume(new NatsUnavailable({ servers, ...whyOf(cause, account) }))
    )
    return Effect.sync(() => void (isWanted = false))
  }).pipe(Effect.tap((connection) => requireServer(connection, servers)))

/** Adds back the servers that the client drops because they did not answer its first tries: it would think the rest are all. */
const remember = (connection: NatsConnection, servers: ReadonlyArray<string>): void => {
  const known = connection.getServers()
  const dropped = servers.filter((server) => !known.some(({ src }) => src === server))
  if (dropped.length > 0) connection.setServers([...known.map(({ listen }) => listen), ...dropped])
}

/** Tries three times, for commands: a busy server or machine may take longer than one try. A server that is not there fails at once. */
export const briefly = (
  once: Effect.Effect<NatsConnection, NatsUnavailable>
): Effect.Effect<NatsConnection, NatsUnavailable> => Effect.retry(once, { times: 2, while: ({ mayPass }) => mayPass })

/**
 * Retries for `NATS_WAIT_MS` milliseconds (default 60,000). In an orchestrator, services and NATS start in any order, and a service
 * that exits repeatedly is restarted less and less often.
 */
export const patiently = (
  once: Effect.Effect<NatsConnection, NatsUnavailable>
): Effect.Effect<NatsConnection, NatsUnavailable | Config.ConfigError> =>
  Effect.gen(function*() {
    const waitMs = yield* Config.schema(atLeast(0), "NATS_WAIT_MS").pipe(Config.withDefault(60_000))
    if (waitMs === 0) return yield* once
    let hasWaited = false
    const schedule = backOff.pipe(
      Schedule.upTo({ duration: waitMs }),
      Schedule.setInputType<NatsUnavailable>(),
      Schedule.while(({ input }) => input.mayPass),
      Schedule.tap(({ attempt, elapsed, elapsedSincePrevious, input }) => {
        hasWaited = true
        const isTime = attempt === 1 ||
          Math.floor(elapsed / warnEveryMs) > Math.floor((elapsed - elapsedSincePrevious) / warnEveryMs)
        return isTime ? Effect.logWarning("waiting for NATS", { detail: input.message }) : Effect.void
      })
    )
    const connection = yield* once.pipe(
      Effect.retry(schedule),
      Effect.mapError((error) =>
        error.mayPass
          ? new NatsUnavailable({ ...error, detail: `${error.detail}, for the ${waitMs / 1_000} s of NATS_WAIT_MS` })
          : error
      )
    )
    if (hasWaited) yield* Effect.logInfo("NATS is available")
    return connection
  })

/** How often a waiting service logs a warning, in milliseconds. */
const warnEveryMs = 30_000

/** Options of every connection. Times are in milliseconds. */
const defaults = {
  maxReconnectAttempts: -1,
  // the server may reject a valid key for a moment while its configuration is replaced
  ignoreAuthErrorAbort: true,
  // The client computes its delay from the wall clock, so a clock set back by a minute would delay a reconnect by a minute. With this
  // handler it never waits; `ServerChoice` sets the delay.
  reconnectDelayHandler: () => Number.NEGATIVE_INFINITY,
  pingInterval: 5_000,
  maxPingOut: 2,
  // also limits each try to connect, because a frozen server accepts connections but stays silent
  timeout: 3_000,
  noAsyncTraces: true,
  /**
   * How many bytes the client gathers before it writes within a turn of the event loop. Its default of 32 KiB holds only a handful of
   * answers, so it causes several writes instead of one. The option is missing from the client's types.
   */
  pendingLimit: 512 * 1024
} as const

const start = "start a server there, or set NATS_URL to another"

const whyOf = (cause: unknown, account: Account): Pick<NatsUnavailable, "detail" | "advice" | "mayPass"> => {
  const detail = cause instanceof Error ? cause.message : "cannot connect"
  const code = codeOf(cause)
  if (cause instanceof errors.AuthorizationError) {
    const { creds, seed, user } = variables[account]
    const advice = `check that these credentials (${seed}, ${creds} or ${user}) match a user of this server`
    // a busy server reports an authentication timeout before it has checked the credentials
    return { detail, advice, mayPass: /timeout/i.test(detail) }
  }
  if (code === "ERR_INVALID_URL") {
    return {
      detail: "invalid address",
      advice: "set NATS_URL to an address such as nats://127.0.0.1:4222, or to several, separated by commas",
      mayPass: false
    }
  }
  if (isSilence(cause, code)) return { detail, advice: start, mayPass: true }
  const isTls = code !== undefined || /tls/i.test(detail)
  return { detail, advice: isTls ? "check NATS_CA, NATS_CERT and NATS_KEY" : start, mayPass: false }
}

/** Whether no server has answered: a timeout or an error of the network or resolver (codes `E…`; Node's own are `ERR_…`). */
const isSilence = (cause: unknown, code: string | undefined): boolean =>
  cause instanceof errors.TimeoutError ||
  (code === undefined ? cause instanceof errors.ConnectionError && !/tls/i.test(cause.message) : /^E(?!RR)/.test(code))

/** The code of an error or of its cause. */
const codeOf = (error: unknown): string | undefined => {
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.hasProperty(error, "cause") ? codeOf(error.cause) : undefined
}

/** The oldest supported version: the one in Debian 12. */
const oldest = SemVer.make({ major: 2, minor: 9, patch: 10 })

/** `1M` in a server's configuration, in bytes. The gateway's messages are made for the default, 1 MiB. */
const leastPayload = 1_000_000

const requireServer = (connection: NatsConnection, servers: string) => {
  const { max_payload: payload = leastPayload, version = "unknown" } = connection.info ?? {}
  const refuse = (detail: string, advice: string) =>
    Effect.andThen(
      Effect.promise(() => connection.close()),
      new NatsUnavailable({ servers, detail, advice, mayPass: false })
    )
  if (!isAtLeast(version, oldest)) return refuse(`version ${version} is older than ${SemVer.format(oldest)}`, start)
  if (payload >= leastPayload) return Effect.void
  return refuse(`max_payload is ${payload} bytes`, "set it to 1MB or more in the server's configuration")
}

/** The oldest version for clusters. Older ones lose replicas of streams: issues 3713, 5542 and 6469 of nats-server. */
const oldestInClusters = SemVer.make({ major: 2, minor: 12, patch: 0 })

/**
 * Logs a warning if the server is too old for `NATS_REPLICAS` above 1. Not an error, because old and new servers run side by side
 * during an upgrade of NATS, and a service that restarts then must be able to connect.
 */
export const warnOfOldCluster = Effect.fnUntraced(function*(connection: NatsConnection) {
  const version = connection.info?.version ?? "unknown"
  if ((yield* replicas) === 1 || isAtLeast(version, oldestInClusters)) return
  const needed = SemVer.format(oldestInClusters)
  yield* Effect.logWarning(`nats-server may lose replicas of streams: use ${needed} or newer in clusters`, { version })
})

/** Compares versions. A pre-release counts as its release. */
const isAtLeast = (version: string, least: SemVer.SemVer): boolean =>
  Result.match(SemVer.parse(version), {
    onFailure: () => false,
    onSuccess: (parsed) => SemVer.isGreaterThanOrEqualTo(SemVer.release(parsed), least)
  })
