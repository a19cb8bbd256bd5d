/** What an administrator of the control plane has: its address, authority and token. */
import { randomBytes } from "node:crypto"

export interface Access {
  readonly url: string
  /** The file with the authority of its certificate. */
  readonly authority: string
  readonly token: string
}

export const newToken = (): string => randomBytes(24).toString("hex")

/** A kubeconfig for kubectl and the controllers. JSON is YAML. */
export const kubeconfig = ({ authority, token, url }: Access): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: url, "certificate-authority": authority } }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
    "current-context": "test"
  })
