/**
 * Calls URLs chosen by clients and providers: only http(s), only public internet addresses, within limits of size and time.
 *
 * The guard resolves the name itself and connects to the very address that it has checked, so that DNS rebinding gains nothing. It
 * checks every redirect again, and sends no key.
 *
 * The URL of a result comes from a provider. The provider may be compromised, or a prompt may make it name an address in the operator's
 * network. So only the origin (scheme, host and port) of the catalogue's `baseUrl` may have any address; every other origin must be
 * public, including after a redirect.
 *
 * The URL of a webhook comes from an administrator. The operator lists the origins of receivers that may have any address.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { lookup } from "node:dns"
import { BlockList, isIP, isIPv4 } from "node:net"
import { Agent, type Dispatcher, request } from "undici"
import * as Span from "../../telemetry/Span.ts"
import { decode, Undecodable } from "../../bounds/ContentCoding.ts"
import { codingsOf, headerOf } from "./ResponseHeaders.ts"

/** Why nothing was fetched. The message is for the client that sent the URL, and reveals nothing about the host behind it. */
export class FetchRefused extends Schema.TaggedError<FetchRefused>()("FetchRefused", {
  reason: Schema.Literals(["url", "address", "redirects", "size", "time", "status", "unreachable"])
}) {
  override get message() {
    return messages[this.reason]
  }
}

const messages = {
  url: "must be an http(s) URL without a user name or password",
  address: "does not lead to a public address",
  redirects: "is redirected too often",
  size: "leads to a file that is too large",
  time: "did not answer in time",
  status: "did not answer with a file",
  unreachable: "cannot be reached"
} as const

export interface Fetched {
  readonly bytes: Uint8Array
  /** The server's `content-type`; empty if absent. */
  readonly mediaType: string
}

export interface FetchOptions {
  /** The origin that may have any address. Default: none. */
  readonly trusted?: string | undefined
  /** Maximum size of the answer in bytes. Default 20 MiB, at most 128 MiB. */
  readonly maximumBytes?: number
  /** The time limit for resolving, connecting, redirects and the whole answer, in milliseconds. Default 10,000. */
  readonly withinMs?: number
}

export interface PostOptions extends Pick<FetchOptions, "trusted"> {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The time limit for resolving, connecting and the answer, in milliseconds. */
  readonly withinMs: number
}

const defaultBytes = 20 * 1024 * 1024
const maximumBytes = 128 * 1024 * 1024
const defaultWithinMs = 10_000
const connectWithinMs = 10_000
const maximumRedirects = 3

/** Addresses outside the public internet, from IANA's registries of special-purpose addresses. */
const special = new BlockList()
for (
  const [network, prefix] of [
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.0.2.0", 24],
    ["192.88.99.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
    ["198.51.100.0", 24],
    ["203.0.113.0", 24],
    ["224.0.0.0", 4],
    ["240.0.0.0", 4],
    // protocol assignments, with Teredo, which embeds IPv4 addresses
    ["2001::", 23],
    ["2001:db8::", 32],
    // 6to4, which embeds IPv4 addresses too
    ["2002::", 16],
    ["3fff::", 20]
  ] as const
) special.addSubnet(network, prefix, isIPv4(network) ? "ipv4" : "ipv6")

/** Global unicast. No other IPv6 address is public; the special IPv6 networks lie within it. */
const globalUnicast = new BlockList()
globalUnicast.addSubnet("2000::", 3, "ipv6")

export const isPublic = (address: string): boolean =>
  isIPv4(address)
    ? !special.check(address, "ipv4")
    : globalUnicast.check(address, "ipv6") && !special.check(address, "ipv6")

type Resolve = (
  hostname: string,
  done: (error: Error | null, addresses: ReadonlyArray<{ readonly address: string; readonly family: number }>) => void
) => void

/** Resolves a name. If the name does not resolve, Node passes only the error, whatever its types say. */
const resolveAll: Resolve = (hostname, done) =>
  lookup(hostname, { all: true }, (error, addresses) => error === null ? done(null, addresses) : done(error, []))

export interface GuardOptions {
  readonly isAllowed: (address: string) => boolean
  readonly resolve: Resolve
}

export class GuardedFetch extends Context.Service<GuardedFetch, {
  /** Fetches a URL, following at most three redirects. */
  readonly fetch: (url: string, options?: FetchOptions) => Effect.Effect<Fetched, FetchRefused>
  /** Posts to a URL and returns the status of the answer. Follows no redirects, and drops the answer's body. */
  readonly post: (url: string, options: PostOptions) => Effect.Effect<number, FetchRefused>
  /** The same guard as a dispatcher for other HTTP clients. Refused calls fail with `FetchRefused`. */
  readonly dispatcher: (trusted: string | undefined) => Dispatcher
}>()("shared/provider/transport/GuardedFetch") {
  /** A guard with other rules, for tests, whose servers have no public addresses. */
  static readonly layerWith = (options: GuardOptions) =>
    Layer.effect(
      GuardedFetch,
      Effect.gen(function*() {
        const dispatcher = yield* dispatchers(options)
        return GuardedFetch.of({
          dispatcher,
          fetch: (url, { maximumBytes = defaultBytes, trusted, withinMs = defaultWithinMs } = {}) =>
            follow(dispatcher(trusted), url, maximumBytes, maximumRedirects).pipe(
              within(withinMs),
              Span.around("GuardedFetch.fetch", { kind: "client" })
            ),
          post: (url, { body, headers, trusted, withinMs }) =>
            Effect.flatMap(parse(url), (parsed) => send(dispatcher(trusted), parsed, headers, body)).pipe(
              within(withinMs),
              Span.around("GuardedFetch.post", { kind: "client" })
            )
        })
      })
    )

  static readonly layer = GuardedFetch.layerWith({ isAllowed: isPublic, resolve: resolveAll })
}

const within = (milliseconds: number) =>
  Effect.timeoutOrElse({
    duration: milliseconds,
    orElse: () => Effect.fail(new FetchRefused({ reason: "time" }))
  })

const agentFor = (connect: Agent.Options["connect"]) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      new Agent({
        // with HTTP/2, undici takes a file that its server breaks off for a whole one
        allowH2: false,
        keepAliveTimeout: 1_000,
        maxResponseSize: maximumBytes,
        connect: { timeout: connectWithinMs, ...connect }
      })
    ),
    (agent) => Effect.promise(() => agent.destroy())
  )

const dispatchers = Effect.fnUntraced(function*({ isAllowed, resolve }: GuardOptions) {
  const open = yield* agentFor({})
  const guarded = yield* agentFor({
    // connects to the checked address itself
    lookup: (hostname, options, done) =>
      resolve(hostname, (error, addresses) => {
        const [first] = addresses
        if (error !== null || first === undefined) return done(error ?? new Error("no address"), [])
        // one private address makes the whole name suspicious
        if (!addresses.every(({ address }) => isAllowed(address))) {
          return done(new FetchRefused({ reason: "address" }), [])
        }
        if (options.all === true) return done(null, [...addresses])
        return done(null, first.address, first.family)
      })
  })
  /** Whether the origin is a literal address that is not allowed. Checked here, because undici does not look up literal addresses. */
  const isRefused = (origin: URL): boolean => {
    const literal = origin.hostname.replace(/^\[|\]$/g, "")
    return isIP(literal) !== 0 && !isAllowed(literal)
  }
  return (trusted: string | undefined): Dispatcher =>
    guarded.compose((dispatch) => (options, handler) => {
      const origin = new URL(options.origin ?? "")
      if (origin.origin === trusted) return open.dispatch(options, handler)
      if (isRefused(origin)) throw new FetchRefused({ reason: "address" })
      return dispatch(options, handler)
    })
})

const follow = Effect.fnUntraced(function*(
  dispatcher: Dispatcher,
  address: string,
  maximumBytes: number,
  redirects: number
): Effect.fn.Return<Fetched, FetchRefused> {
  const url = yield* parse(address)
  const answer = yield* exchange(dispatcher, url, maximumBytes)
  if (answer.location !== undefined) {
    if (redirects === 0) return yield* new FetchRefused({ reason: "redirects" })
    const next = URL.parse(answer.location, url.href)
    if (next === null) return yield* new FetchRefused({ reason: "url" })
    return yield* follow(dispatcher, next.href, maximumBytes, redirects - 1)
  }
  if (answer.status !== 200) return yield* new FetchRefused({ reason: "status" })
  return { bytes: answer.bytes, mediaType: answer.mediaType }
})

const parse = (text: string): Effect.Effect<URL, FetchRefused> => {
  const url = URL.parse(text)
  const isUsable = url !== null && (url.protocol === "http:" || url.protocol === "https:") &&
    url.username === "" && url.password === ""
  return isUsable ? Effect.succeed(url) : Effect.fail(new FetchRefused({ reason: "url" }))
}

interface Answer extends Fetched {
  readonly status: number
  /** The target of a redirect. */
  readonly location: string | undefined
}

const userAgent = "model-gateway"

/** How much of an unneeded answer is read, in bytes, so that its connection can be used again. */
const dropped = { limit: 64 * 1024 }

const redirectStatuses = [301, 302, 303, 307, 308]

const exchange = (dispatcher: Dispatcher, url: URL, maximumBytes: number): Effect.Effect<Answer, FetchRefused> =>
  Effect.tryPromise({
    try: async (signal): Promise<Answer> => {
      const { body, headers, statusCode: status } = await request(url, {
        dispatcher,
        signal,
        headers: { "user-agent": userAgent, "accept": "image/*,*/*;q=0.1", "accept-encoding": "identity" }
      })
      // a body that is not read to its end emits an error, which must have a listener
      body.on("error", () => {})
      const header = (name: string): string => headerOf(headers, name) ?? ""
      const location = redirectStatuses.includes(status) ? header("location") : ""
      if (location !== "" || status !== 200) {
        await body.dump(dropped)
        return { status, location: location === "" ? undefined : location, bytes: new Uint8Array(0), mediaType: "" }
      }
      if (Number(header("content-length")) > maximumBytes) {
        body.destroy()
        throw new FetchRefused({ reason: "size" })
      }
      const pieces: Array<Uint8Array> = []
      let size = 0
      const content = decode(body, codingsOf(headers) ?? [], { maxBytes: maximumBytes })
      if (content !== body) content.once("close", () => body.destroy())
      for await (const piece of content as AsyncIterable<Uint8Array>) {
        size += piece.length
        if (size > maximumBytes) throw new FetchRefused({ reason: "size" })
        pieces.push(piece)
      }
      return { status, location: undefined, bytes: Buffer.concat(pieces, size), mediaType: header("content-type") }
    },
    catch: describe
  })

const send = (dispatcher: Dispatcher, url: URL, headers: PostOptions["headers"], content: string) =>
  Effect.tryPromise({
    try: async (signal) => {
      const { body, statusCode } = await request(url, {
        dispatcher,
        signal,
        method: "POST",
        headers: { "user-agent": userAgent, ...headers },
        body: content
      })
      body.on("error", () => {})
      await body.dump(dropped)
      return statusCode
    },
    catch: describe
  })

const describe = (cause: unknown): FetchRefused => {
  if (cause instanceof FetchRefused) return cause
  if (cause instanceof Undecodable) return new FetchRefused({ reason: cause.reason === "size" ? "size" : "status" })
  const error = cause as NodeJS.ErrnoException
  if (error.cause instanceof FetchRefused) return error.cause
  switch (error.code) {
    case "UND_ERR_RES_EXCEEDED_MAX_SIZE":
      return new FetchRefused({ reason: "size" })
    case "UND_ERR_CONNECT_TIMEOUT":
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return new FetchRefused({ reason: "time" })
    default:
      return new FetchRefused({ reason: "unreachable" })
  }
}
