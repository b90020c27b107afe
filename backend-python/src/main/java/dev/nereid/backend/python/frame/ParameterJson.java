package dev.nereid.backend.python.frame;

import java.util.Map;

/** Writes parameters as a compact JSON object. Static functions only. */
public final class ParameterJson {
    private static final String HEX = "0123456789abcdef";

    private ParameterJson() {}

    /** Returns texts, numbers and truth values by name as a JSON object in one line. */
    public static String of(Map<String, ?> parameters) {
        StringBuilder json = new StringBuilder("{");
        parameters.forEach((name, value) -> {
            if (json.length() > 1) {
                json.append(',');
            }
            quote(json, name);
            json.append(':');
            if (value instanceof Number || value instanceof Boolean) {
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
            switch (c) {
                case '"' -> json.append("\\\"");
                case '\\' -> json.append("\\\\");
                case '\n' -> json.append("\\n");
                case '\r' -> json.append("\\r");
                case '\t' -> json.append("\\t");
                default -> {
                    if (c < ' ') {
                        json.append("\\u00").append(HEX.charAt(c >> 4)).append(HEX.charAt(c & 15));
                    } else {
                        json.append(c);
                    }
                }
            }
        }
        json.append('"');
    }
}
