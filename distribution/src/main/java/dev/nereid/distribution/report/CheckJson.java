package dev.nereid.distribution.report;

import dev.nereid.plugin.BackendStatus;
import dev.nereid.repository.config.ConfigProblem;
import dev.nereid.repository.config.ModelConfigJson;
import dev.nereid.server.check.CheckReport;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;

/** The report of a check for programs. Static functions only. */
public final class CheckJson {
    private CheckJson() {}

    public static String of(CheckReport report) {
        JsonArray backends = new JsonArray();
        report.backends().forEach(status -> backends.add(backend(status)));
        JsonArray models = new JsonArray();
        report.models().forEach(model -> models.add(model(model)));
        return new JsonObject()
                .put("valid", report.isValid())
                .put("backends", backends)
                .put("models", models)
                .put("warnings", new JsonArray(report.warnings()))
                .encodePrettily();
    }

    private static JsonObject backend(BackendStatus status) {
        return new JsonObject()
                .put("name", status.backend())
                .put("plugin", status.plugin())
                .put("state", status.state().name())
                .put("reason", status.reason());
    }

    private static JsonObject model(CheckReport.ModelReport model) {
        JsonArray errors = new JsonArray();
        model.errors().forEach(error -> errors.add(error(error)));
        JsonObject json = new JsonObject()
                .put("name", model.name())
                .put("valid", model.isValid())
                .put("file", model.file().toString())
                .put("versions", new JsonArray(model.versions()))
                .put("errors", errors)
                .put("warnings", new JsonArray(model.warnings()));
        model.config().ifPresent(config -> json.put("config", new JsonObject(ModelConfigJson.write(config))));
        return json;
    }

    private static JsonObject error(ConfigProblem error) {
        JsonObject json = new JsonObject().put("message", error.message());
        if (error.hasPosition()) {
            json.put("line", error.line()).put("column", error.column()).put("text", error.sourceLine());
        }
        if (!error.suggestion().isEmpty()) {
            json.put("suggestion", error.suggestion());
        }
        return json;
    }
}
