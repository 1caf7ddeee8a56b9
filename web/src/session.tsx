// Who looks, and what they may do: known by a cookie, which a link or a token is exchanged for.
import { createContext, type ComponentChildren } from "preact";
import { useCallback, useContext, useEffect, useState } from "preact/hooks";
import { get, post, Refused, type Session } from "./api";
import { Trouble } from "./parts";

const Controls = createContext(false);

/// Whether whoever looks may stop, resume and retry runs; the server refuses it otherwise.
export const useControls = (): boolean => useContext(Controls);

function Enter({ refused, entered }: { refused: string; entered: (session: Session) => void }) {
  const [token, set_token] = useState("");
  const [error, set_error] = useState(refused);
  const enter = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      entered(await post("/v1/session", {}, token.trim()));
    } catch (failure) {
      set_error(failure instanceof Error ? failure.message : String(failure));
    }
  };
  return (
    <form onSubmit={(event) => void enter(event)}>
      <h1>Log in</h1>
      <Trouble error={error} />
      <p>
        Open the link that <code>berth dashboard</code> or <code>berth serve</code> printed, or enter the token from its <code>--token-file</code>:
      </p>
      <label>
        token <input type="password" autocomplete="off" value={token} onInput={(event) => set_token(event.currentTarget.value)} />
      </label>{" "}
      <button disabled={token.trim() === ""}>Log in</button>
    </form>
  );
}

/// What is within is for whoever the server knows.
export function Known({ children }: { children: ComponentChildren }) {
  const [session, enter] = useState<Session | null>(null);
  const [refused, refuse] = useState<string | null>(null);
  const ask = useCallback(() => {
    get("/v1/session", {}).then(enter, (failure: Error) => {
      if (failure instanceof Refused) refuse(failure.message);
      else window.setTimeout(ask, 2000);
    });
  }, []);
  useEffect(ask, []);
  if (session !== null) return <Controls.Provider value={session.role === "control"}>{children}</Controls.Provider>;
  return refused === null ? null : <Enter refused={refused} entered={enter} />;
}
