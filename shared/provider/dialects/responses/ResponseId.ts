/** Ids of responses: the gateway's own, since no client can ask a provider for a response. */
import { randomUUID } from "node:crypto"

export const newResponseId = (): string => `resp_${randomUUID().replaceAll("-", "")}`
