package dev.nereid.distribution.metrics;

import dev.nereid.api.RefusalCause;
import dev.nereid.api.Refusals;
import dev.nereid.api.RequestProtocol;
import java.util.LinkedHashMap;
import java.util.Map;

/** Metrics of requests that were refused before they were queued. Static functions only. */
final class RefusalMetrics {
    private static final String NAME = "nereid_requests_refused_total";

    private RefusalMetrics() {}

    /** Returns the counters, those at 0 included, in the Prometheus text format. */
    static byte[] text(Refusals refusals) {
        CounterText text = new CounterText().family(NAME, "Number of requests refused before they were queued");
        Map<String, String> labels = new LinkedHashMap<>();
        for (RequestProtocol protocol : RequestProtocol.values()) {
            labels.put("protocol", protocol.label());
            for (RefusalCause cause : RefusalCause.values()) {
                labels.put("cause", cause.label());
                text.sample(NAME, labels, refusals.refused(protocol, cause));
            }
        }
        return text.toByteArray();
    }
}
