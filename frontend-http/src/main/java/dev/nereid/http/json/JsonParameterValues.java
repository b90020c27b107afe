package dev.nereid.http.json;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.parameter.ParameterValue;

/** Reads and writes the values of parameters as JSON. Static functions only. */
public final class JsonParameterValues {
    private JsonParameterValues() {}

    /**
     * Reads the value at the reader's position, which belongs to a parameter of the backend.
     *
     * @throws InferenceException if it is not a number, a boolean or a string
     */
    public static ParameterValue read(JsonReader json, JsonNumber number, String name) {
        byte first = json.peek();
        if (first == '"') {
            return new ParameterValue.Text(json.readString());
        } else if (first == 't' || first == 'f') {
            return new ParameterValue.Bool(first == 't');
        } else if (json.readNumber(number)) {
            return number.isSigned() ? new ParameterValue.Int(number.bits()) : new ParameterValue.Real(number.value());
        }
        throw JsonFields.invalid("parameter '" + Quoted.text(name)
                + "' has invalid type. It should be either 'int', 'bool', or 'string'.");
    }

    public static void write(JsonWriter json, ParameterValue parameter) {
        switch (parameter) {
            case ParameterValue.Bool bool -> json.raw(Boolean.toString(bool.value()));
            case ParameterValue.Int whole -> json.integer(whole.value());
            case ParameterValue.Real real -> json.real(real.value());
            case ParameterValue.Text text -> json.string(text.value());
        }
    }
}
