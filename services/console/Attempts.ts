/**
 * Slows down whoever guesses the admin token: so many wrong ones from one address, and from all together, and nothing
 * more is compared for a while.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { isIPv6 } from "node:net"
import { TooManyAttempts } from "./api/Errors.ts"

/** Wrong tokens within one window: by one address, and by all. */
const perAddress = 5
const inAll = 100
const windowMs = 60_000

/** Addresses remembered at one time; the one that began first is forgotten first. */
const maxAddresses = 10_000

interface Count {
  wrong: number
  readonly until: number
}

const all = "all"

export class Attempts extends Context.Service<Attempts, {
  /** Fails where there were too many; otherwise runs the comparison, and counts it where it says `false`. */
  readonly judge: (
    isRight: () => boolean
  ) => Effect.Effect<boolean, TooManyAttempts, HttpServerRequest.HttpServerRequest>
}>()("services/console/Attempts") {
  static readonly layer = Layer.sync(Attempts, () => {
    const counts = new Map<string, Count>()

    const countOf = (name: string, now: number): Count => {
      const known = counts.get(name)
      if (known !== undefined && known.until > now) return known
      counts.delete(name)
      return { wrong: 0, until: now + windowMs }
    }

    const remember = (name: string, count: Count): void => {
      count.wrong++
      counts.set(name, count)
      for (const oldest of counts.keys()) {
        if (counts.size <= maxAddresses) return
        if (oldest !== all) counts.delete(oldest)
      }
    }

    return Attempts.of({
      judge: (isRight) =>
        Effect.gen(function*() {
          const now = yield* Clock.currentTimeMillis
          const address = neighbourhood(
            Option.getOrElse((yield* HttpServerRequest.HttpServerRequest).remoteAddress, () => "unknown")
          )
          // nothing is waited for from here on: attempts at one time cannot slip through together
          const own = countOf(address, now)
          const total = countOf(all, now)
          if (own.wrong >= perAddress) return yield* new TooManyAttempts({ retryAfterMs: own.until - now })
          if (total.wrong >= inAll) return yield* new TooManyAttempts({ retryAfterMs: total.until - now })
          if (isRight()) return true
          remember(address, own)
          remember(all, total)
          return false
        })
    })
  })
}

/** One customer of a network has a whole /64 of IPv6 addresses. */
const neighbourhood = (address: string): string => {
  if (!isIPv6(address) || address.startsWith("::ffff:")) return address
  const [head = [], tail = []] = address.split("::").map((half) => half.split(":"))
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => "0")
  return [...head, ...zeros, ...tail].slice(0, 4).join(":")
}
