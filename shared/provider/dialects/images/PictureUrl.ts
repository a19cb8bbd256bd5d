/**
 * Allowed URLs of pictures in provider answers: `data:`, `https:`, or the provider's own origin.
 *
 * Clients open these URLs, also in browsers. A compromised provider, or a model manipulated by a prompt, must not send them
 * `javascript:` or plain HTTP URLs of a private network.
 */
import { Effect } from "effect"
import { ProviderFailed } from "../../../contract/JobError.ts"
import { bytesIn, isDataUrl } from "../../call/Base64File.ts"
import { type Endpoint, originOf } from "../../transport/Endpoint.ts"

export const refused = ({ name }: Endpoint): ProviderFailed =>
  ProviderFailed.malformed(
    name,
    "the URL of an image is neither a data URL nor https, nor of the provider's own origin"
  )

const parseAcceptable = (text: string, endpoint: Endpoint): URL | undefined => {
  const url = URL.parse(text)
  return url !== null && (url.protocol === "https:" || url.origin === originOf(endpoint)) ? url : undefined
}

/** Whether the gateway may pass this URL on to a client. */
export const isAcceptable = (url: string, endpoint: Endpoint): boolean =>
  /^data:image\//i.test(url) || parseAcceptable(url, endpoint) !== undefined

/** The bytes of a data URL, or a URL to fetch or to pass on. */
export const contentAt = (text: string, endpoint: Endpoint): Effect.Effect<Uint8Array | URL, ProviderFailed> => {
  if (isDataUrl(text)) return Effect.succeed(bytesIn(text))
  const url = parseAcceptable(text, endpoint)
  return url === undefined ? Effect.fail(refused(endpoint)) : Effect.succeed(url)
}
