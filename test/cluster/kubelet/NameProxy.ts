/**
 * An HTTP proxy that stands in for the cluster's DNS: it leads requests for NATS's headless Service to its ready pods in turn, so that
 * programs outside the cluster can be told the addresses that the manifests have.
 */
import { Effect } from "effect"
import { createServer, get } from "node:http"
import { once } from "node:events"
import type { AddressInfo } from "node:net"

const name = "nats-headless.nats.svc.cluster.local"

/** Starts it for these addresses, asked at each request; returns its URL. It ends with the scope. */
export const startNameProxy = Effect.fn("startNameProxy")(function*(addresses: () => ReadonlyArray<string>) {
  let turn = 0
  const server = createServer((request, response) => {
    const { hostname, pathname, port, search } = new URL(request.url ?? "", "http://none")
    const ready = addresses()
    const host = ready[turn++ % ready.length]
    if (hostname !== name || host === undefined) return response.writeHead(502).end()
    get({ host, port, path: `${pathname}${search}` }, (answer) => {
      response.writeHead(answer.statusCode ?? 502)
      answer.pipe(response)
    }).on("error", () => response.destroy())
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => once(server.listen(0, "127.0.0.1"), "listening")),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
