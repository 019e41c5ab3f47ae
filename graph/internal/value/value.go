// Package value stores Go values as bytes and reads them back with the types that they
// had: the values of keys, the results of effects, and what a Halt holds. It also says
// which types cannot be read back.
package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"raddle.dev/graph/internal/panics"
)

// Encode appends the stored form of a typed value: text for numbers and
// strings, bytes as they are, the dynamic codec for interfaces, encodeMixed for
// lists and maps with interfaces inside, JSON for the rest.
func Encode[T any](dst []byte, v T) ([]byte, error) {
	if reflect.TypeFor[T]().Kind() == reflect.Interface { // whatever type it holds
		return EncodeAny(dst, v)
	}
	switch x := any(v).(type) {
	case int:
		return strconv.AppendInt(dst, int64(x), 10), nil
	case int64:
		return strconv.AppendInt(dst, x, 10), nil
	case string:
		return append(dst, x...), nil
	case []byte:
		if x == nil {
			return dst, nil
		}
		return append(append(dst, '='), x...), nil
	}
	return encodeOther(dst, v)
}

// encodeOther is Encode for values that are stored as JSON or by encodeMixed. The
// JSON encoder gets a pointer, so that it calls methods with pointer receivers.
func encodeOther[T any](dst []byte, v T) (j []byte, err error) {
	switch how := StorageOf(reflect.TypeFor[T]()); {
	case how.form == formMixed:
		return encodeMixed(append(dst, mixedMark), reflect.ValueOf(&v).Elem(), 0)
	case how.direct:
		j, err = json.Marshal(v)
	default:
		j, err = json.Marshal(&v)
	}
	if err == nil {
		j, err = keepTexts(reflect.ValueOf(&v), j)
	}
	if dst == nil {
		return j, err
	}
	return append(dst, j...), err
}

// Decode reads what Encode wrote. It keeps no reference to b.
func Decode[T any](b []byte) (v T, err error) {
	switch p := any(&v).(type) {
	case *int:
		*p, err = strconv.Atoi(string(b))
		return v, err
	case *int64:
		*p, err = strconv.ParseInt(string(b), 10, 64)
		return v, err
	case *string:
		*p = string(b)
		return v, nil
	case *[]byte:
		if len(b) > 0 {
			*p = bytes.Clone(b[1:])
		}
		return v, nil
	}
	if reflect.TypeFor[T]().Kind() == reflect.Interface {
		x, err := DecodeAny(b)
		if err != nil {
			return v, err
		}
		v, ok := x.(T)
		if !ok && x != nil {
			return v, fmt.Errorf("the journal holds a %T, which is not a %s", x, TypeName(reflect.TypeFor[T]()))
		}
		return v, nil
	}
	if len(b) > 0 && b[0] == mixedMark {
		err = decodeMixed(b[1:], reflect.ValueOf(&v).Elem())
		return ClipAs(v), err
	}
	err = DecodeJSON(b, &v)
	return ClipAs(v), err
}

// MarshalAnswer returns the JSON of an answer. Text that is not UTF-8 is an error.
func MarshalAnswer(v any) ([]byte, error) {
	j, err := MarshalJSON(v)
	if err == nil {
		err = CheckText(v, j)
	}
	return j, err
}

// MarshalJSON returns the JSON of a value. A panic in one of its methods becomes an error.
func MarshalJSON(v any) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError(fmt.Sprintf("the JSON of a %T", v), p)
		}
	}()
	return json.Marshal(v)
}

// unmarshalJSON reads JSON into a value. A panic in one of its methods becomes an error.
func unmarshalJSON(b []byte, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError(fmt.Sprintf("the JSON of a %T", into), p)
		}
	}()
	return json.Unmarshal(b, into)
}
