package dev.nereid.http.infer;

import dev.nereid.api.Quoted;
import dev.nereid.http.body.TrailingHeaderSpace;
import dev.nereid.http.json.JsonFields;
import dev.nereid.spi.ParameterValue;
import io.vertx.core.http.HttpServerRequest;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** Adds forwarded HTTP headers to the parameters of a request. */
final class ForwardedHeaders {
    private static final String RESERVED_PREFIX = "triton_";
    private static final Set<String> RESERVED = Set.of(
            "sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output");

    private ForwardedHeaders() {}

    /**
     * Adds headers to the parameters of a request; a header outdoes a parameter of the same name, since it may come from
     * a proxy that clients cannot get around.
     *
     * @param parameters what the body holds
     * @param request whose headers, in the case they were sent in
     * @param pattern found in the names of those to pass on
     * @throws dev.nereid.api.InferenceException if one of them has a name that means something to the server
     */
    static Map<String, ParameterValue> add(
            Map<String, ParameterValue> parameters, HttpServerRequest request, Pattern pattern) {
        Map<String, List<String>> blanks = TrailingHeaderSpace.of(request);
        Map<String, Integer> seen = new HashMap<>();
        Map<String, ParameterValue> all = new LinkedHashMap<>(parameters);
        for (Map.Entry<String, String> header : request.headers().entries()) {
            String name = header.getKey();
            if (!pattern.matcher(name).find()) {
                continue;
            }
            if (RESERVED.contains(name) || name.startsWith(RESERVED_PREFIX)) {
                throw JsonFields.invalid(
                        "Header '" + Quoted.text(name) + "' is reserved for Triton usage and cannot be forwarded.");
            }
            all.put(name, new ParameterValue.Text(decode(header.getValue()) + behind(name, blanks, seen)));
        }
        return all;
    }

    /** Returns the blanks behind the next header of a name. */
    private static String behind(String name, Map<String, List<String>> blanks, Map<String, Integer> seen) {
        if (blanks.isEmpty()) {
            return "";
        }
        String key = name.toLowerCase(Locale.ROOT);
        int index = seen.merge(key, 1, Integer::sum) - 1;
        List<String> known = blanks.getOrDefault(key, List.of());
        return index < known.size() ? known.get(index) : "";
    }

    /** Returns what the client most likely wrote: the transport makes a character of each byte. */
    private static String decode(String value) {
        return value.chars().allMatch(character -> character < 0x80)
                ? value
                : new String(value.getBytes(StandardCharsets.ISO_8859_1), StandardCharsets.UTF_8);
    }
}
