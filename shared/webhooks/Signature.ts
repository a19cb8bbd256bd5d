/** Signs webhooks according to the Standard Webhooks specification, version 1, which OpenAI's clients verify. */
import { createHmac } from "node:crypto"

/** The headers of a webhook, with one signature for each secret. `at`: the time of the attempt, in epoch milliseconds. */
export const headersOf = (id: string, at: number, body: string, secrets: ReadonlyArray<string>) => {
  const timestamp = String(Math.floor(at / 1_000))
  const sign = (secret: string): string => {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64")
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`
  }
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map(sign).join(" ")
  }
}
