package dev.nereid.distribution.client;

import io.vertx.core.json.JsonObject;

/** The results of control requests as JSON, for programs. Static functions only. */
public final class ControlResult {
    private ControlResult() {}

    /**
     * Describes a request that the server has carried out.
     *
     * @return {@code {"model":…,"ok":true}} and a line feed
     */
    public static String success(String model) {
        return new JsonObject().put("model", model).put("ok", true).encode() + "\n";
    }

    /**
     * Describes a request that failed.
     *
     * @param error the reason
     * @return {@code {"model":…,"ok":false,"error":…}} and a line feed
     */
    public static String failure(String model, RequestException error) {
        return new JsonObject()
                        .put("model", model)
                        .put("ok", false)
                        .put("error", error.getMessage())
                        .encode() + "\n";
    }
}
