/** `GET /v1/responses`: opens a WebSocket for responses. Without an upgrade, the answer tells clients to use HTTP. */
import { Clock, Effect, Exit, Option } from "effect"
import { HttpRouter } from "effect/http"
import type { IncomingMessage } from "node:http"
import { WebSocketServer } from "ws"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { responses } from "../../../shared/contract/operations/Responses.ts"
import { Unavailable } from "../../../shared/contract/JobError.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { Drain } from "../../../shared/process/Drain.ts"
import * as RawAnswer from "../answer/RawAnswer.ts"
import { OriginNotAllowed, UpgradeRequired } from "../errors/IngressError.ts"
import { CrossOrigin } from "../exchange/CrossOrigin.ts"
import { Front } from "../exchange/Front.ts"
import { Upgrades } from "../exchange/Upgrades.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import { authenticate } from "../request/Authentication.ts"
import { BodyMemory, maxBodyBytes } from "../body/BodyMemory.ts"
import { ResponsesSocket } from "../socket/ResponsesSocket.ts"
import { respond } from "../answer/Respond.ts"

const { dialect, paths: [path] } = responses

/**
 * Maximum sockets of one ingress. One key may have half of them. Each takes a few kilobytes, and for its latest responses memory from
 * the budget for bodies.
 */
const maxSockets = 1_000

/**
 * Tells the sockets when ingress drains: they close after their running answers. A finalizer would be too late, because the server
 * closes before its routes, and waits for the sockets.
 */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const keys = yield* KeyRing
  const memory = yield* BodyMemory
  const { take } = yield* Front
  const { refusedIn } = yield* CrossOrigin
  const drain = yield* Drain
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: maxBodyBytes })
  const budget = new TenantBudget(maxSockets)
  const runCallback = Effect.runCallbackWith(yield* Effect.context<never>())

  yield* router.add(
    "GET",
    path,
    ({ headers }) =>
      respond(
        "responses.connect",
        dialect,
        (record) =>
          Effect.flatMap(authenticate(keys, { headers }, dialect), ({ id }) => {
            record.setKey(id)
            const origin = refusedIn(headers)
            return Effect.fail(origin === undefined ? new UpgradeRequired() : OriginNotAllowed.of(origin))
          })
      )
  )

  const keyIn = ({ headers }: IncomingMessage) => authenticate(keys, { headers: headers as RequestHeaders }, dialect)

  /** Whether its key is valid, or is a token that is still to be verified. */
  const mayBeKnown = (request: IncomingMessage): boolean => {
    const found = keyIn(request)
    return !Exit.isExit(found) || Exit.isSuccess(found)
  }

  yield* (yield* Upgrades).serve({
    accepts: (request) =>
      request.method === "GET" && RouteTemplate.pathOf(request.url ?? "") === path &&
      request.headers.upgrade?.toLowerCase() === "websocket" && refusedIn(request.headers) === undefined &&
      mayBeKnown(request),
    take: (request, connection, head) => {
      // without a listener a reset connection would end the process
      connection.on("error", () => connection.destroy())
      runCallback(keyIn(request), {
        onExit: (exit) => {
          if (connection.destroyed) return
          if (Exit.isFailure(exit)) {
            return RawAnswer.writeTo(
              connection,
              dialect,
              Option.getOrElse(Exit.findErrorOption(exit), Unavailable.briefly)
            )
          }
          const tenant = exit.value.id
          if (!budget.reserve(tenant, 1)) return RawAnswer.writeTo(connection, dialect, new UpgradeRequired())
          connection.once("close", () => budget.release(tenant, 1))
          server.handleUpgrade(request, connection, head, (socket) => {
            const opened = new ResponsesSocket({ socket, connection, request, path, tenant, memory, now, take })
            socket.on("close", drain.onStop(() => opened.drain()))
          })
        }
      })
    }
  })
}))
