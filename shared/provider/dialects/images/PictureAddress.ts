/**
 * The addresses that a provider's answer may give for a picture: `data:`, `https:`, or the provider's own origin.
 *
 * Clients open these addresses, in browsers too. A provider that was taken over, or was talked into it by a prompt, must not
 * hand them `javascript:` or an address of somebody's private network over plain HTTP.
 */
import { Effect } from "effect"
import { ProviderFailed } from "../../../contract/JobError.ts"
import { originOf } from "../../transport/Endpoint.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import type { Picture } from "./ImageModel.ts"

const dataUrl = /^data:[^,]{0,200};base64,/i

/** The provider's fault, in words that its operator can act on. */
export const refused = ({ name }: Endpoint): ProviderFailed =>
  ProviderFailed.malformed(
    name,
    "it gives an address for a picture that is neither a data URL nor https, nor of the provider's own origin"
  )

const acceptable = (address: string, endpoint: Endpoint): URL | undefined => {
  const url = URL.parse(address)
  return url !== null && (url.protocol === "https:" || url.origin === originOf(endpoint)) ? url : undefined
}

/** Whether a client may be given this address. */
export const isAcceptable = (address: string, endpoint: Endpoint): boolean =>
  /^data:image\//i.test(address) || acceptable(address, endpoint) !== undefined

/** What is at the address: the bytes of a data URL, or a URL to fetch or to pass on. */
export const contentAt = (address: string, endpoint: Endpoint): Effect.Effect<Picture["content"], ProviderFailed> => {
  if (dataUrl.test(address)) return Effect.succeed(Buffer.from(address.replace(dataUrl, ""), "base64"))
  const url = acceptable(address, endpoint)
  return url === undefined ? Effect.fail(refused(endpoint)) : Effect.succeed(url)
}
