/** Rejects requests until the service can handle them, while it waits for NATS or for a stream or bucket. */
import type { OutgoingHttpHeaders, RequestListener, Server } from "node:http"

/**
 * Responds with 503 until the service adds its own handler. `refusalOf` makes the body and further headers for a URL. The
 * client's retry on a new connection lets load balancers choose another server.
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
