/** A collector that accepts all telemetry and discards it. */
import { createServer } from "node:http"

createServer((request, response) => {
  request.resume()
  request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
}).listen(Number(process.env["PORT"] ?? 0), "127.0.0.1")
