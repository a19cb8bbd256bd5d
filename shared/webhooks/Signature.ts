/** Signs webhooks by the specification Standard Webhooks, version 1, which OpenAI's clients verify. */
import { createHmac } from "node:crypto"

/** `at`: the time of this attempt, in epoch milliseconds. One signature for each secret. */
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
