package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.HeldResponses;
import java.util.List;

/** Metrics of the responses that models hold of other ones. Static functions only. */
final class ResponseMetrics {
    private static final String OPEN = "nereid_model_responses_open";

    private ResponseMetrics() {}

    /** Returns the metrics of all models that have sent requests to others. Omitted if there is none. */
    static byte[] text(List<HeldResponses> models) {
        CounterText text = new CounterText();
        if (!models.isEmpty()) {
            text.gauge(OPEN, "Responses of other models that a model has received and not closed");
            models.forEach(model -> text.sample(OPEN, ModelMetrics.labels(model.holder()), model.open()));
        }
        return text.toByteArray();
    }
}
