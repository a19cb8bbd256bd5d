/** `GET /v1/responses`: opens a WebSocket for responses, and tells clients that ask for none to do without. */
import { Clock, Effect, Exit } from "effect"
import { HttpRouter } from "effect/http"
import type { IncomingMessage } from "node:http"
import { WebSocketServer } from "ws"
import { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import { responses } from "../../../shared/contract/operations/Responses.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { UpgradeRequired } from "../errors/IngressError.ts"
import { Front } from "../exchange/Front.ts"
import { Upgrades } from "../exchange/Upgrades.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import { authenticate } from "../request/Authentication.ts"
import { maxBodyBytes } from "../request/IncomingBody.ts"
import { ResponsesSocket } from "../socket/ResponsesSocket.ts"
import { respond } from "../answer/Respond.ts"

const { dialect, paths: [path] } = responses

/** The most sockets of one ingress. Each keeps a few kilobytes, and up to its responses' size of the memory for bodies. */
const maxSockets = 1_000

/** Waits for running answers after the routes have closed: the server stops after its last connection. */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const keys = yield* KeyRing
  const { bodies } = yield* JobClient
  const { take } = yield* Front
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: maxBodyBytes })
  const open = new Set<ResponsesSocket>()

  yield* router.add(
    "GET",
    path,
    ({ headers }) =>
      respond(
        "responses.connect",
        dialect,
        (record) =>
          Effect.flatMap(authenticate(keys, headers, dialect), ({ id }) => {
            record.setKey(id)
            return Effect.fail(new UpgradeRequired())
          })
      )
  )

  const keyOf = ({ headers }: IncomingMessage): ApiKey | undefined => {
    const found = authenticate(keys, headers as RequestHeaders, dialect)
    return Exit.isExit(found) && Exit.isSuccess(found) ? (found as Exit.Success<ApiKey>).value : undefined
  }

  yield* (yield* Upgrades).serve({
    accepts: (request) =>
      request.method === "GET" && RouteTemplate.pathOf(request.url ?? "") === path &&
      request.headers.upgrade?.toLowerCase() === "websocket" && open.size < maxSockets && keyOf(request) !== undefined,
    take: (request, connection, head) => {
      const key = keyOf(request)
      if (key === undefined) return connection.destroy()
      server.handleUpgrade(request, connection, head, (socket) => {
        const opened = new ResponsesSocket({ socket, connection, request, path, tenant: key.id, bodies, now, take })
        open.add(opened)
        socket.on("close", () => open.delete(opened))
      })
    }
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const socket of open) socket.drain()
    })
  )
}))
