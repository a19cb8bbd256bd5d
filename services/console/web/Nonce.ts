/** The page's nonce, without which its content security policy blocks the `<style>` elements that libraries add. */
import { setNonce } from "get-nonce"

export const nonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? ""

// the library that locks scrolling behind dialogs reads its nonce from get-nonce
setNonce(nonce)
