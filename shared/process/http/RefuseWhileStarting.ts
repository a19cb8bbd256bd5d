/** Rejects requests while the service cannot handle them yet, because it waits for NATS, a stream or a bucket. */
import type { OutgoingHttpHeaders, RequestListener, Server } from "node:http"

/**
 * Responds with 503, and closes the connection, until the service adds its own handler: the client's retry on a new connection lets a
 * load balancer choose another server. `refusalOf` makes the body and further headers for a URL.
 */
export const refuseWhileStarting = <S extends Server>(
  server: S,
  refusalOf: (url: string) => { readonly body: string; readonly headers?: OutgoingHttpHeaders }
): S => {
  const refuse: RequestListener = ({ url = "" }, response) => {
    const { body, headers } = refusalOf(url)
    const retryElsewhere = { connection: "close", "retry-after": "1" }
    response.writeHead(503, { "content-type": "application/json", ...headers, ...retryElsewhere }).end(body)
  }
  const remove = (event: string | symbol) => {
    if (event === "request") server.off("request", refuse).off("newListener", remove)
  }
  return server.on("request", refuse).on("newListener", remove)
}
