package dev.nereid.http.body;

import dev.nereid.api.frontend.ForwardedHeaders;
import io.vertx.core.http.HttpServerRequest;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/** Reads the headers of an HTTP request that are forwarded to the backend. Confined to one event loop. */
public final class ForwardedHeaderReader {
    /** Trailing space by the name of the header in lower case. There is one text for each header of that name. */
    private final Map<String, List<String>> trailingSpace;

    /** The number of headers that were read, by their name in lower case. */
    private final Map<String, Integer> counts = new HashMap<>();

    private ForwardedHeaderReader(Map<String, List<String>> trailingSpace) {
        this.trailingSpace = trailingSpace;
    }

    /** Reads the headers with names, in the case of the client, in which a pattern is found; none without a pattern. */
    public static ForwardedHeaders read(HttpServerRequest request, Optional<Pattern> names) {
        return names.isEmpty() ? ForwardedHeaders.NONE : read(request, names.get());
    }

    private static ForwardedHeaders read(HttpServerRequest request, Pattern names) {
        ForwardedHeaderReader reader = new ForwardedHeaderReader(TrailingHeaderSpace.of(request));
        ForwardedHeaders.Builder forwarded = new ForwardedHeaders.Builder(names);
        for (Map.Entry<String, String> header : request.headers()) {
            String name = header.getKey();
            if (forwarded.matches(name)) {
                forwarded.add(name, decode(header.getValue()) + reader.trailingSpace(name));
            }
        }
        return forwarded.build();
    }

    /** Returns the trailing space of the next header of a name. */
    private String trailingSpace(String name) {
        if (trailingSpace.isEmpty()) {
            return "";
        }
        String key = name.toLowerCase(Locale.ROOT);
        int index = counts.merge(key, 1, Integer::sum) - 1;
        List<String> texts = trailingSpace.getOrDefault(key, List.of());
        return index < texts.size() ? texts.get(index) : "";
    }

    /** Returns what the client most likely wrote: the transport makes a character of each byte. */
    private static String decode(String value) {
        return value.chars().allMatch(character -> character < 0x80)
                ? value
                : new String(value.getBytes(StandardCharsets.ISO_8859_1), StandardCharsets.UTF_8);
    }
}
