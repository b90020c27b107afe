package dev.nereid.backend.python.call;

import dev.nereid.spi.Parameters;
import java.util.Map;

/** Writes parameters as JSON without blanks, as Python models read them. Static functions only. */
public final class ParameterJson {
    private static final String HEX = "0123456789abcdef";

    private ParameterJson() {}

    /**
     * Writes parameters as one JSON object, in their order.
     *
     * <p>Numbers that are not finite are written as Python's reader of JSON expects them: {@code NaN}, {@code Infinity}.
     *
     * @param parameters texts, integers, numbers and truth values; others are written as texts
     * @return the object; an empty text if there are no parameters
     */
    public static String write(Parameters parameters) {
        Map<String, Object> values = parameters.asMap();
        if (values.isEmpty()) {
            return "";
        }
        StringBuilder json = new StringBuilder("{");
        values.forEach((name, value) -> {
            if (json.length() > 1) {
                json.append(',');
            }
            quote(json, name);
            json.append(':');
            if (value instanceof Long || value instanceof Double || value instanceof Boolean) {
                json.append(value);
            } else {
                quote(json, value.toString());
            }
        });
        return json.append('}').toString();
    }

    private static void quote(StringBuilder json, String text) {
        json.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < ' ') {
                json.append("\\u00").append(HEX.charAt(c >> 4)).append(HEX.charAt(c & 15));
            } else {
                json.append(c);
            }
        }
        json.append('"');
    }
}
