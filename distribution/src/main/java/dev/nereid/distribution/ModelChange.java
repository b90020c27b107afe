package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.UsageException;
import io.vertx.core.json.JsonObject;

/** Loads or unloads a model, and prints the result as text or JSON. Confined to the command's thread. */
final class ModelChange implements ClientAction {
    private final String done;
    private final Action action;
    private String model = "";
    private boolean json;

    /** The flags and the request of a change. */
    interface Action {
        /** Declares the flags that other changes do not have. */
        void declare(Flags flags);

        void run(ServerClient server, String model) throws UsageException, RequestException, InterruptedException;
    }

    /** Makes a change after which a model is {@code done}, as in {@code loaded}. */
    ModelChange(String done, Action action) {
        this.done = done;
        this.action = action;
    }

    @Override
    public void declare(Flags flags) {
        flags.operand("MODEL", value -> model = value);
        action.declare(flags);
        flags.toggle("--json", () -> json = true).help("Prints the result as JSON: model, ok and error.");
    }

    /** Returns the text of a success: {@code {"model":…,"ok":true}} or a sentence. */
    @Override
    public String run(ServerClient server) throws UsageException, RequestException, InterruptedException {
        action.run(server, model);
        return json ? line(result(true)) : model + ": " + done + "\n";
    }

    /** Returns the text of a failure: {@code {"model":…,"ok":false,"error":…}} or nothing. */
    @Override
    public String failure(RequestException error) {
        return json ? line(result(false).put("error", error.getMessage())) : "";
    }

    private JsonObject result(boolean ok) {
        return new JsonObject().put("model", model).put("ok", ok);
    }

    private static String line(JsonObject result) {
        return result.encode() + "\n";
    }
}
