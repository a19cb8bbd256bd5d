/** A collector that takes whatever telemetry it is sent and keeps nothing of it. */
import { createServer } from "node:http"

createServer((request, response) => {
  request.resume()
  request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
}).listen(Number(process.env["PORT"] ?? 0), "127.0.0.1")
