/** Lets the libraries add `<style>` elements, which the page's policy forbids to everybody who does not know its nonce. */
import { setNonce } from "get-nonce"

export const nonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? ""

// what keeps the page behind a dialog from scrolling asks this module
setNonce(nonce)
