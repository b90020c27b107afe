package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.flags.Flags;
import io.vertx.core.json.JsonObject;

/** The model that a command loads or unloads, and the result as text or JSON. Confined to the command's thread. */
final class ModelChange {
    private final String done;
    private String model = "";
    private boolean json;

    /** Makes a change after which a model is {@code done}, as in {@code loaded}. */
    ModelChange(String done) {
        this.done = done;
    }

    /** Declares the model. */
    void declareModel(Flags flags) {
        flags.operand("MODEL", value -> model = value);
    }

    /** Declares the format of the result. */
    void declareFormat(Flags flags) {
        flags.toggle("--json", () -> json = true).help("Prints the result as JSON: model, ok and error.");
    }

    String model() {
        return model;
    }

    /** Returns the text of a success: {@code {"model":…,"ok":true}} or a sentence. */
    String success() {
        return json ? line(result(true)) : model + ": " + done + "\n";
    }

    /** Returns the text of a failure: {@code {"model":…,"ok":false,"error":…}} or nothing. */
    String failure(RequestException error) {
        return json ? line(result(false).put("error", error.getMessage())) : "";
    }

    private JsonObject result(boolean ok) {
        return new JsonObject().put("model", model).put("ok", ok);
    }

    private static String line(JsonObject result) {
        return result.encode() + "\n";
    }
}
