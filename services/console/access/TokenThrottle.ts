/**
 * Throttles wrong admin tokens. The right token always passes, even from an address that sent many wrong ones: the token is
 * compared first, in constant time and at the cost of one SHA-256, and the throttle counts only mismatches.
 *
 * Five wrong tokens per address and minute, and 100 from all addresses, are answered immediately. Answers to further ones are
 * delayed, and their connections closed. The number of delayed answers is bounded, so that a flood costs no memory. The
 * throttle slows guessing down and makes it visible; the minimum length in `Token` makes it hopeless.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isIPv6 } from "node:net"
import { TooManyAttempts } from "../api/Errors.ts"

/** Wrong tokens per window that are answered without delay: per address, and in total. */
const perAddress = 5
const inAll = 100
const windowMs = 60_000

/** Delay of further answers, and how many may be delayed at the same time: per address, and in total. */
const delayMs = 1_000
const heldPerAddress = 10
const heldInAll = 100

/** Maximum number of tracked addresses. The address with the oldest window is evicted first. */
const maxAddresses = 10_000

interface Count {
  wrong: number
  held: number
  until: number
}

const all = "all"

export class TokenThrottle extends Context.Service<TokenThrottle, {
  /** Runs the comparison. If it returns `false` after too many wrong tokens, fails after a delay. */
  readonly check: (
    isRight: () => boolean
  ) => Effect.Effect<boolean, TooManyAttempts, HttpServerRequest.HttpServerRequest>
}>()("services/console/access/TokenThrottle") {
  static readonly layer = Layer.sync(TokenThrottle, () => {
    const counts = new Map<string, Count>()

    const countOf = (name: string, now: number): Count => {
      const count = counts.get(name) ?? { wrong: 0, held: 0, until: 0 }
      if (count.until > now) return count
      count.wrong = 0
      count.until = now + windowMs
      // keeps the map in order of the windows' start
      counts.delete(name)
      counts.set(name, count)
      for (const oldest of counts.keys()) {
        if (counts.size <= maxAddresses) break
        if (oldest !== all) counts.delete(oldest)
      }
      return count
    }

    /** Delays the answer if the bounds allow it. In any case, the next guess needs a new connection. */
    const refuse = (own: Count, total: Count, retryAfterMs: number) =>
      Effect.suspend(() => {
        if (own.held >= heldPerAddress || total.held >= heldInAll) return Effect.void
        own.held++
        total.held++
        return Effect.ensuring(
          Effect.sleep(delayMs),
          Effect.sync(() => {
            own.held--
            total.held--
          })
        )
      }).pipe(
        Effect.andThen(HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(HttpServerResponse.setHeaders(response, {
            connection: "close",
            "retry-after": String(Math.ceil(retryAfterMs / 1_000))
          }))
        )),
        Effect.andThen(new TooManyAttempts({ retryAfterMs }))
      )

    return TokenThrottle.of({
      check: (isRight) =>
        Effect.gen(function*() {
          if (isRight()) return true
          const now = yield* Clock.currentTimeMillis
          const { remoteAddress } = yield* HttpServerRequest.HttpServerRequest
          const own = countOf(networkOf(Option.getOrElse(remoteAddress, () => "unknown")), now)
          const total = countOf(all, now)
          const isThrottled = own.wrong >= perAddress || total.wrong >= inAll
          if (!isThrottled) {
            own.wrong++
            total.wrong++
            return false
          }
          return yield* refuse(own, total, (own.wrong >= perAddress ? own : total).until - now)
        })
    })
  })
}

/** The address itself, or its /64 prefix for IPv6, because one customer of an internet provider has a whole /64. */
const networkOf = (address: string): string => {
  if (!isIPv6(address) || address.startsWith("::ffff:")) return address
  const [head = [], tail = []] = address.split("::").map((half) => half.split(":"))
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => "0")
  return [...head, ...zeros, ...tail].slice(0, 4).join(":")
}
