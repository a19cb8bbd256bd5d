/** Takes the requests of operations before they reach Effect's router, which would start a fiber for each. */
import { Context, Effect, Layer, type Scope } from "effect"
import type { Operation } from "../../../shared/contract/Operation.ts"
import type { Incoming, Outgoing } from "./Exchange.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"

type Handle = (match: PathTemplate.Match, request: Incoming, response: Outgoing) => void

export class Front extends Context.Service<Front, {
  /** Returns whether it has taken the request. */
  readonly take: (request: Incoming, response: Outgoing) => boolean
  /** Takes requests of these operations until the scope closes. */
  readonly add: (operations: ReadonlyArray<Operation>, handle: Handle) => Effect.Effect<void, never, Scope.Scope>
}>()("services/ingress/exchange/Front") {
  static readonly layer = Layer.sync(Front, () => {
    const handlers = new Set<{ readonly match: ReturnType<typeof PathTemplate.matcher>; readonly handle: Handle }>()
    return Front.of({
      take: (request, response) => {
        if (request.method !== "POST") return false
        const path = RouteTemplate.pathOf(request.url ?? "")
        for (const { handle, match } of handlers) {
          const found = match(path)
          if (found === undefined) continue
          handle(found, request, response)
          return true
        }
        return false
      },
      add: (operations, handle) => {
        const handler = { match: PathTemplate.matcher(operations), handle }
        return Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => handlers.add(handler)),
          () => Effect.sync(() => handlers.delete(handler))
        ))
      }
    })
  })
}
