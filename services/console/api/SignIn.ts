/** Sign-in with an OpenID provider, as the console's pages and the provider see it. */

/** Starts a sign-in. `to` is the page to show afterwards. */
export const startPath = "/sign-in/start"
/** The provider sends the browser back to it. */
export const callbackPath = "/sign-in/callback"
/** The provider posts a logout token here when a person has signed out elsewhere. */
export const signedOutPath = "/sign-in/signed-out"

/** Whether a path is a page of the console. Only such pages can follow a sign-in, so that it never redirects to another site. */
export const isPage = (path: string): boolean => /^\/[a-z-]{0,40}$/.test(path)

/** Why a sign-in failed, by the value of `problem` in the URL of the sign-in page. */
export const problems = {
  cancelled: "The sign-in was cancelled at the identity provider.",
  expired:
    "The sign-in took longer than ten minutes, was already used, or began in another tab or browser. Sign in again.",
  "no-role":
    "You are signed in at the identity provider, but none of your groups has a role here. Ask an administrator to add you to one, or to add one of yours to CONSOLE_OIDC_ROLES.",
  refused: "The identity provider's answer is invalid. The console's log has the cause.",
  unavailable: "The identity provider or NATS does not answer. Try again."
}
export type Problem = keyof typeof problems

/** The sign-in page with the explanation of a problem. */
export const problemPath = (problem: Problem): string => `/sign-in?problem=${problem}`
