/** Gives base64 the one form that every provider reads. */

/** The URL-safe alphabet, lines as in MIME, or a text without its padding. */
const isOther = (data: string): boolean => data.length % 4 !== 0 || /[-_\s]/.test(data)

/** Base64 in the standard alphabet (RFC 4648, section 4) with padding. Google's clients use the URL-safe one. */
export const standardBase64 = (data: string): string => {
  if (!isOther(data)) return data
  const bare = data.replaceAll(/\s+/g, "").replaceAll("-", "+").replaceAll("_", "/").replace(/={1,2}$/, "")
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, "=")
}
